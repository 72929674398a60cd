"""The process of a decoder plugin. An engine in a Python process starts it: `python _plugin_host.py ENGINE`."""

import sys

if __name__ == "__main__":
    # The compiled part alone, which lies beside this file: a plugin needs no NumPy.
    import _core

    _core.plugin_host(int(sys.argv[1]))
