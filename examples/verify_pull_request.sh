#!/bin/sh
# Checks what the description of a pull request says about the code. A false description fails the step.
# The description comes in the variable DESCRIPTION: it is a stranger's text, so it is never part of a command.
set -eu

if [ -z "${DESCRIPTION-}" ]; then
    echo "There is no description to check."
    exit 0
fi

# The report quotes the description. Until the end, GitHub must not take a line of it for a command of the workflow.
if [ -n "${GITHUB_ACTIONS-}" ]; then
    resume=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$resume"
    trap 'echo "::$resume::"' EXIT
fi

# 0: true, or only doubtful; 12: the code says otherwise. Without --accept-warnings a doubtful text ends with 11.
printf '%s' "$DESCRIPTION" | cortex verify --accept-warnings
