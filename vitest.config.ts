import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './packages/leasehold/test/setup/longest-first.ts'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts'],
    // Many tests wait for real processes or real time, so one more than the cores keeps them busy.
    maxWorkers: availableParallelism() + 1,
    // A virtual clock makes most tests instant. The limit is for those that start real processes or
    // write real files, on a machine that is busy with something else.
    testTimeout: 90_000,
    hookTimeout: 180_000,
    // What a test waits for comes late on such a machine too: a second, which is usual, is a guess.
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ['scripts/wait-longer.js', 'packages/leasehold/test/setup/file-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // Says what was run and ends with the totals, on a terminal and in a log alike.
    reporters: ['default'],
    // A test left alone by accident would let all others pass unseen.
    allowOnly: false,
  },
})
