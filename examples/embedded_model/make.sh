#!/bin/sh
# Train the embedded base by the pipeline in three courses, each from one seed:
#
#     pip install '.[train,local]'
#     sh examples/embedded_model/make.sh
#
# Run it in the root of a checkout.  Interrupted, the same command goes on where it was.  It needs two
# cores and 20 GB of memory; where they compute in bfloat16, two to three hours.
set -eu

base=$(antiphon models fetch local)
build=build/embedded_model
# Without these half of a step can be page faults; with them a process keeps what it once had.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1 MALLOC_TOP_PAD_=64000000
export MALLOC_TRIM_THRESHOLD_=800000000 MALLOC_MMAP_THRESHOLD_=200000000
export OMP_NUM_THREADS=1

# course CONFIG REACT OPTION... : its rows, of which the last REACT are trained as ReAct's text too.
course() {
    config=examples/embedded_model/$1.toml out=$build/$1 react=$2
    shift 2
    if [ ! -e "$out/encoded" ]; then
        antiphon synth "$config" --out "$out"
        antiphon verify "$out/runs.jsonl" --config "$config" --against demo --out "$out/verified"
        antiphon encode "$out/verified/kept.jsonl" --tokenizer "$base" --format smollm2 \
            --set compact=true --out "$out/smollm2"
        tail -n "$react" "$out/verified/kept.jsonl" | antiphon encode - --tokenizer "$base" \
            --format react_en --set frame=smollm2 --out "$out/react"
        : > "$out/encoded"
    fi
    torchrun --nproc-per-node 2 -m antiphon train "$out/smollm2" "$out/react" \
        --model "gguf/$base" --lora 16 --share 2048 --dtype bfloat16 --accumulate 1 \
        --trainer adam_beta2=0.98 --save-steps 20 --out "$out/run" "$@"
}

course synth 700 --lr 1e-3 --trainer warmup_steps=20
course second 500 --lr 7e-4 --trainer warmup_steps=10 --adapter $build/synth/run/model
course third 500 --lr 7e-4 --trainer warmup_steps=10 --adapter $build/second/run/model --steps 270
echo "$build/third/run/model/adapter.gguf"
