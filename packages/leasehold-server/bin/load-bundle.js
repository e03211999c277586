const fs = require('node:fs')
const { createRequire } = require('node:module')
const { basename, dirname, join } = require('node:path')
const vm = require('node:vm')
const { crc32 } = require('node:zlib')

/** The bundle ends with the checksum of its code: see scripts/build-bundle.js. */
const CHECKSUM_LENGTH = 64
/** A command that runs longer keeps its compiled code after this time, when it has started. */
const STARTED_MS = 1000

/**
 * Loads a CommonJS module with the code that V8 compiled in an earlier run of the same command. Without
 * it, half of a start is compiling. (Node can do this by itself only from version 22 on.) The module
 * must not use import(), which Node refuses here.
 *
 * The compiled code is kept beside the bundle. Who can write there can also change the bundle, so it
 * must be trusted no more than the bundle is. A user who cannot write there starts more slowly.
 */
exports.loadBundle = (file, command) => {
  // The bundle is ASCII, which is read fastest as Latin-1.
  const source = fs.readFileSync(file, 'latin1')
  const wrapped = `(function(exports,require,module,__filename,__dirname){${source}})`
  const kept = keptFile(file, source, command)
  const cachedData = readKept(kept)
  const script = new vm.Script(wrapped, { filename: file, cachedData })
  if (cachedData === undefined || script.cachedDataRejected) keepOnce(script, kept)
  const module = { exports: {} }
  script.runInThisContext()(module.exports, createRequire(file), module, file, dirname(file))
  return module.exports
}

/** Each build, version of Node and command has its own file. */
function keptFile(bundle, source, command) {
  const checksum = source.trimEnd().slice(-CHECKSUM_LENGTH)
  const name = /^[a-z][a-z-]*$/.test(command) ? command : 'other'
  const file = `${basename(bundle, '.cjs')}-${name}-${process.version}-${process.arch}-${checksum}`
  return join(dirname(bundle), 'cache', file)
}

/** V8 crashes on damaged code, so a checksum follows it. */
function readKept(file) {
  try {
    const bytes = fs.readFileSync(file)
    const code = bytes.subarray(0, -4)
    return crc32(code) === bytes.readUInt32LE(code.length) ? code : undefined
  } catch {
    return undefined
  }
}

/** Keeps the code that was compiled so far, once the command has started or succeeded. */
function keepOnce(script, file) {
  let isKept = false
  const keep = () => {
    if (isKept) return
    isKept = true
    try {
      write(file, script.createCachedData())
    } catch {
      // The folder may belong to another user: the next start compiles again.
    }
  }
  setTimeout(keep, STARTED_MS).unref()
  // After a failure, the command may be one that does not exist: it gets no file.
  process.once('exit', (code) => {
    if (code === 0) keep()
  })
}

function write(file, code) {
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(crc32(code))
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
  const temporary = `${file}.${process.pid}.tmp`
  try {
    fs.writeFileSync(temporary, Buffer.concat([code, checksum]), { mode: 0o644 })
    fs.renameSync(temporary, file)
  } catch (error) {
    fs.rmSync(temporary, { force: true })
    throw error
  }
}
