// Drives RadixAllocator of text-generation-inference. A line of the input is
//     a TOKENS ID...   allocate TOKENS for a prompt (x instead of a: without it)
//     f INDEX          free the allocation of that index among those alive
// and a line of the output is the prefix found (-1: no room; 0 for f), the blocks
// evicted so far, held in the trie, and free.
mod block_allocator {
    use std::sync::Arc;

    pub struct BlockAllocator;

    pub struct BlockAllocation {
        pub allocation_id: u64,
        pub blocks: Vec<u32>,
        pub slots: Vec<u32>,
        pub prefix_len: u32,
        pub block_allocator: Option<BlockAllocator>,
    }

    pub trait Allocator {
        fn allocate(
            &mut self,
            tokens: u32,
            prefill_tokens: Option<Arc<Vec<u32>>>,
        ) -> Option<BlockAllocation>;

        fn free(&mut self, blocks: Vec<u32>, allocation_id: u64);
    }
}

mod radix {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/radix.rs"));

    pub fn held(a: &RadixAllocator) -> usize {
        a.cache_blocks.nodes.values().map(|n| n.blocks.len()).sum()
    }

    pub fn free_blocks(a: &RadixAllocator) -> usize {
        a.free_blocks.len()
    }
}

use block_allocator::Allocator;
use std::io::BufRead;
use std::sync::Arc;

fn main() {
    let args: Vec<u32> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let mut cache = radix::RadixAllocator::new(args[0], args[1], None);
    let (mut alive, mut evicted) = (Vec::new(), 0);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let op = words.next().unwrap();
        let numbers: Vec<u32> = words.map(|w| w.parse().unwrap()).collect();
        let mut found: i64 = 0;
        if op == "f" {
            let a: block_allocator::BlockAllocation = alive.remove(numbers[0] as usize);
            let _ = (&a.slots, &a.block_allocator);
            cache.free(a.blocks, a.allocation_id);
        } else {
            let prompt = (op == "a").then(|| Arc::new(numbers[1..].to_vec()));
            let held = radix::held(&cache);
            match cache.allocate(numbers[0], prompt) {
                Some(a) => {
                    found = a.prefix_len as i64;
                    alive.push(a);
                }
                None => found = -1,
            }
            evicted += held - radix::held(&cache);
        }
        let (held, free) = (radix::held(&cache), radix::free_blocks(&cache));
        println!("{found} {evicted} {held} {free}");
    }
}
