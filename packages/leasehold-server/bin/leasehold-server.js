#!/usr/bin/env node
// What is started by the server's own name serves, unless it is told otherwise.
if (process.argv.length === 2 || process.argv[2].startsWith('-')) process.argv.splice(2, 0, 'serve')
await import('../dist/main.js')
