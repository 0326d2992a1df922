"""Records the hashes by which SGLang names pages in its KV events.

    python record_hashes.py DIR | gzip -9n > hashes.jsonl.gz

DIR is where the wheel of sglang 0.5.23 was unpacked; see record.py. Its hash is
C++, which it compiles here: a compiler, ninja and OpenSSL's headers are needed.

A line is a sequence of n tokens, token(i, 0...) with i the line's number from 0,
with the digest of its last page, which covers all of them, and the hash that the
event carries for it.
"""

import argparse
import json
import types
from array import array

import record
from traces import token


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dir", help="the unpacked wheel of sglang 0.5.23")
    record.load(parser.parse_args().dir)
    from sglang.srt.mem_cache.base_prefix_cache import InsertParams
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.events import KvEventLoraNames
    from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey

    for i in range(1000):
        page, salt, bigrams = (1, 3, 16, 64)[i % 4], "", i % 5 == 0
        if i % 7 == 0:
            salt = ("a", "tenant-42", "é")[i // 7 % 3]
        extra, lora_id = ("x" if i % 13 == 0 else ""), ""
        names = KvEventLoraNames()
        if i % 11 == 0:
            lora_id = f"{i:032x}"
            req = types.SimpleNamespace(extra_key=extra + lora_id, lora_id=lora_id)
            names.register(req, "adapter")
        n = (1 + i * 37 % 9) * page + bigrams
        tree = RadixCache(
            CacheInitParams(
                disable=False,
                req_to_token_pool=None,
                token_to_kv_pool_allocator=None,
                page_size=page,
                is_eagle=bigrams,
                enable_kv_cache_events=True,
                kv_event_lora_names=names,
            )
        )
        key = RadixKey(
            array("q", [token(i, j) for j in range(n)]),
            extra_key=(extra + lora_id) or None,
            cache_salt=salt or None,
        )
        tree.insert(InsertParams(key=key))
        (node,) = tree.root_node.children.values()
        digest = tree.kv_events._node_event_hash_values(node)[-1]
        event = tree.take_events()[-1].block_hashes[-1]
        line = {"page": page, "n": n, "bigrams": bigrams, "salt": salt, "extra": extra}
        line |= {"lora_id": lora_id, "digest": digest, "event": event}
        print(json.dumps({k: v for k, v in line.items() if v}, separators=(",", ":")))


if __name__ == "__main__":
    main()
