//! `pinwheel completions` and `pinwheel man`: generated from the grammar and the key table.
//!
//! Pure, except for standard output.

use super::say::{self, written};
use crate::keymap::{Scope, page};
use clap::builder::Resettable;
use clap::{Arg, Args as ClapArgs, Command, Id};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// Meaning of each exit status.
pub const EXIT_STATUSES: [(&str, &str); 4] = [
    ("0", "Success."),
    ("1", "The command ran but found a problem: lost shots, a failed drill or check, a thread that did not confirm."),
    ("2", "Unusable input or environment; one sentence says what was found, what was expected, and what to do."),
    ("129, 130, 143", "After SIGHUP, SIGINT or SIGTERM, with a clean drain."),
];

#[derive(Debug, ClapArgs)]
pub struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes the completions of a shell for the `grammar`.
pub fn completions(args: &CompletionsArgs, grammar: &Command) -> u8 {
    print_text(&completions_text(args.shell, grammar))
}

fn completions_text(shell: Shell, grammar: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(grammar), "pinwheel", &mut text);
    text
}

/// The grammar without hidden commands and options, which generators of completions do not leave
/// out. A command gives up none of its parts, so it is made again.
fn without_hidden(command: &Command) -> Command {
    // A name has to be static here. The process ends soon.
    let text = |text: &str| -> &'static str { text.to_owned().leak() };
    let arguments: Vec<&Arg> = command.get_arguments().filter(|option| !option.is_hide_set()).collect();
    let is_shown = |id: &Id| arguments.iter().any(|option| option.get_id() == id);
    let groups = command.get_groups().filter(|group| group.get_args().all(is_shown)).cloned();
    Command::new(text(command.get_name()))
        .about(Resettable::from(command.get_about().cloned()))
        .version(command.get_version().map(text))
        .groups(groups)
        .subcommands(shown(command).map(without_hidden))
        .args(arguments.iter().copied())
}

pub fn man(grammar: Command) -> u8 {
    match manual(grammar) {
        Ok(text) => print_text(&text),
        Err(error) => written(Err(error), 1),
    }
}

fn print_text(text: &[u8]) -> u8 {
    written(say::text(&mut io::stdout().lock(), &String::from_utf8_lossy(text)), 0)
}

/// The page: every command with its options, then the console's keys, then its files and exit
/// statuses.
fn manual(mut command: Command) -> io::Result<Vec<u8>> {
    command.build();
    let mut text = Vec::new();
    let whole = Man::new(command.clone());
    whole.render_title(&mut text)?;
    whole.render_name_section(&mut text)?;
    whole.render_synopsis_section(&mut text)?;
    whole.render_description_section(&mut text)?;
    commands(&command).to_writer(&mut text)?;
    keys().to_writer(&mut text)?;
    files().to_writer(&mut text)?;
    whole.render_version_section(&mut text)?;
    Ok(text)
}

fn commands(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in shown(command) {
        options(command, &format!("pinwheel {}", command.get_name()), &mut roff);
    }
    roff
}

/// The commands of `command` that are for people.
pub fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
}

/// The short and the long name of an option; empty for a positional argument.
pub fn names_of(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
}

fn options(command: &Command, name: &str, roff: &mut Roff) {
    roff.control("SS", [name]);
    roff.text([roman(command.get_about().map(ToString::to_string).unwrap_or_default())]);
    for option in command.get_arguments().filter(|option| option.get_id() != "help" && !option.is_hide_set()) {
        let value = option.get_value_names().map(|names| {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            names.join(" ")
        });
        let value = value.filter(|_| option.get_action().takes_values()).unwrap_or_default();
        let choices: Vec<String> =
            option.get_possible_values().iter().map(|choice| choice.get_name().to_owned()).collect();
        let is_choice = !choices.is_empty() && option.get_action().takes_values();
        let choices = if is_choice { format!(": {}", choices.join(", ")) } else { String::new() };
        roff.control("TP", []);
        roff.text([bold(format!("{} {value}", names_of(option)).trim().to_owned())]);
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        roff.text([roman(help + &default_of(option) + &choices)]);
    }
    for inner in shown(command) {
        options(inner, &format!("{name} {}", inner.get_name()), roff);
    }
}

/// The default of an option's value, as `--help` shows it.
pub fn default_of(option: &Arg) -> String {
    let defaults: Vec<_> = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let is_shown = option.get_action().takes_values() && !defaults.is_empty() && !option.is_hide_default_value_set();
    if is_shown { format!(" [default: {}]", defaults.join(" ")) } else { String::new() }
}

fn keys() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["KEYS"]);
    roff.text([roman(
        "Keys of the console: each key, the name of its action in a file of keys, and the action. \
         A file of keys is a map in RON: { \"views\": { \"freeze\": [\"F\", \"F5\"] } }.",
    )]);
    for scope in Scope::ALL {
        roff.control("SS", [format!("{} ({})", scope.heading(), scope.name()).as_str()]);
        for (keys, name, what) in page::lines(scope) {
            roff.control("TP", []);
            roff.text([bold(keys)]);
            roff.text([roman(format!("{name}: {what}"))]);
        }
    }
    roff
}

fn files() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["FILES"]);
    for (name, what) in [
        ("keys.ron", "Keys of the console: in the directory of profiles, else in $XDG_CONFIG_HOME/pinwheel."),
        (
            "theme.ron",
            "Your own colours of the console: in the directory of profiles, else in $XDG_CONFIG_HOME/pinwheel.",
        ),
        (
            "console.ron",
            "Settings that the console keeps between starts: in $XDG_STATE_HOME/pinwheel, else in ~/.local/state/pinwheel.",
        ),
        ("profiles/NAME.ron", "Profiles: in a checkout, or in the directory of --profiles."),
        ("logs/", "Run directories: in a checkout, else in $XDG_STATE_HOME/pinwheel."),
    ] {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(what)]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (status, what) in EXIT_STATUSES {
        roff.control("TP", []);
        roff.text([bold(status)]);
        roff.text([roman(what)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "harness")]

    use super::{Command, Scope, completions_text, manual, names_of, page};
    use crate::cli::args::Args;
    use clap::{CommandFactory, ValueEnum};
    use clap_complete::Shell;
    use pinwheel_report::format::{Syntax, visible};

    #[test]
    fn the_manual_names_every_command_every_option_and_every_key() {
        let text = String::from_utf8(manual(Args::command()).unwrap()).unwrap().replace("\\-", "-");
        for command in Args::command().get_subcommands() {
            let heading = format!(".SS \"pinwheel {}\"", command.get_name());
            assert_eq!(text.contains(&heading), !command.is_hide_set(), "{heading}");
            for option in command.get_arguments().filter(|_| !command.is_hide_set()) {
                let names = names_of(option);
                assert_eq!(text.contains(&names), !option.is_hide_set(), "{names}");
            }
        }
        assert!(text.contains("-o, --output F|-") && text.contains(": utf-8, ascii"), "{text}");
        assert!(text.contains("How long each core is measured, at most 10m [default: 5s]"), "{text}");
        for (_, name, _) in Scope::ALL.into_iter().flat_map(page::lines) {
            assert!(text.contains(&format!("{name}: ")), "{name}");
        }
    }

    #[test]
    fn every_shell_gets_completions_that_name_the_commands() {
        for shell in Shell::value_variants() {
            let text = String::from_utf8(completions_text(*shell, &Args::command())).unwrap();
            for name in ["postmortem", "replay", "cudaq-slot-size", "version", "Send a command to a running engine"] {
                assert!(text.contains(name) || *shell == Shell::Bash && name.contains(' '), "{shell}: {name}");
            }
            assert_eq!(visible(&text, Syntax::Plain), text, "{shell}: printed as it is");
        }
    }

    #[test]
    fn completions_name_nothing_that_is_hidden() {
        fn hidden(command: &Command) -> Vec<String> {
            let options = command.get_arguments().filter(|option| option.is_hide_set());
            let mut names: Vec<String> = options.filter_map(|option| option.get_long().map(str::to_owned)).collect();
            for inner in command.get_subcommands() {
                names.extend(inner.is_hide_set().then(|| inner.get_name().to_owned()));
                names.extend(hidden(inner));
            }
            names
        }
        let names = hidden(&Args::command());
        assert!(names.contains(&"plugin-host".to_owned()) && names.contains(&"own-terminal".to_owned()), "{names:?}");
        for shell in Shell::value_variants() {
            let text = String::from_utf8(completions_text(*shell, &Args::command())).unwrap();
            let named: Vec<&String> = names.iter().filter(|name| text.contains(name.as_str())).collect();
            assert!(named.is_empty(), "{shell}: {named:?}");
        }
    }
}
