#!/usr/bin/env node
import { load } from './load.js'

// `leasehold-server` without a command means `leasehold serve`.
if (process.argv.length === 2 || process.argv[2].startsWith('-')) process.argv.splice(2, 0, 'serve')
await load()
