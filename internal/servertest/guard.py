"""Runs a server that does not watch its standard input. usage: guard.py COMMAND ARGUMENT…

Kills its whole process group, itself too, when standard input ends or the command does. It is meant to lead a group of
its own.
"""

import os
import signal
import subprocess
import sys
import threading


def end_with_input():
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


os.dup2(2, 1)  # one log
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=end_with_input, daemon=True).start()
print("guard.py: the server ended with status", child.wait(), file=sys.stderr, flush=True)
os.killpg(0, signal.SIGKILL)
