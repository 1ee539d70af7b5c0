#!/bin/sh
# The main job on the sample datasets: four dialects scored, stored as Parquet and answered by SQL.
# Usage: docs/demo.sh PATH_OF_ASSAY
set -eu
assay=$1

step() {
    printf '\n$ assay'
    for word in "$@"; do
        case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$assay" "$@"
}

step run data/foundry/support.jsonl --evaluators ExactMatch,PartialMatch,Citations --name foundry
step run data/m365/support-desk.json --responses data/answers/m365-support-desk.jsonl --name m365
step run data/csv/faq.csv --evaluators ExactMatch,Contains --name csv -q
step run data/uipath/ticket-agent --responses data/answers/uipath-ticket-agent.jsonl --name uipath
step query "select r.name, s.evaluator, count(*) filter (where s.passed) as passed, count(*) as evaluated, round(avg(score), 3) as mean from scores s join runs r using (run_id) group by all order by all"
