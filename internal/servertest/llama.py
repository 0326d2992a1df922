"""llama.cpp's own server with the settings of one test.

usage: llama.py SETTINGS, a JSON object of attributes of xllamacpp.CommonParams by their dotted paths.

Prints the address on standard output once the model is loaded; everything else, the log too, goes to standard error.
Ends when standard input ends, so that it never outlives the process that started it.
"""

import json
import os
import sys
import threading


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)  # the server's own destructor waits for open connections


def set_attribute(target, path, value):
    *parents, name = path.split(".")
    for parent in parents:
        target = getattr(target, parent)
    if not hasattr(target, name):
        sys.exit(f"llama.py: there is no setting {path}")
    if isinstance(getattr(target, name), set):  # JSON has none
        value = set(value)
    setattr(target, name, value)


def main():
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what native code prints must not look like the answer
    threading.Thread(target=end_with_input, daemon=True).start()

    import xllamacpp

    params = xllamacpp.CommonParams()
    for path, value in json.loads(sys.argv[1]).items():
        set_attribute(params, path, value)
    server = xllamacpp.Server(params)
    print(server.listening_address, file=answer, flush=True)
    threading.Event().wait()


main()
