#!/usr/bin/env node
// `leasehold-server` without a command means `leasehold serve`.
if (process.argv.length === 2 || process.argv[2].startsWith('-')) process.argv.splice(2, 0, 'serve')
require('./load.js').load()
