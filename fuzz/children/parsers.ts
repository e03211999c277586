import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kernel } from 'leasehold/kernel'
import { isLeaseholdError, milliseconds } from 'leasehold/port'
import { readClaim, readGrant, readLeases, readRelease } from 'leasehold/remote'
import { DEFAULT_STREAM } from 'leasehold-server'
import type { Failure } from '../failure.ts'
import type { ParserInput } from '../targets/parsers.ts'
import { expand } from '../text.ts'
import { config, messages, records, rights, webSocketFrames } from './internals.ts'
import { describe, Probe } from './probe.ts'

const { parseFrame, parseHello, MalformedError } = await messages()
const { loadConfig } = await config()
const { parseRight } = await rights()
const { FrameReader, FrameError } = await webSocketFrames()
const { decodeRecords } = await records()

const folder = mkdtempSync(join(tmpdir(), 'leasehold-fuzz-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.on('disconnect', () => process.exit())

const PARSERS: Record<ParserInput['parser'], (text: string) => void> = {
  hello: (text) => {
    const [first] = frameOf(text)
    parseHello(first)
  },
  requests: (text) => {
    for (const message of frameOf(text)) {
      for (const read of [readClaim, readGrant, readRelease, readLeases]) read(message as never)
    }
  },
  'config-file': (text) => {
    const file = join(folder, 'leasehold.json')
    writeFileSync(file, text)
    loadConfig({ config: file }, {})
  },
  'config-flags': (text) => {
    const [name = '', value = ''] = text.split('=')
    loadConfig({ config: join(folder, 'none'), [name]: value }, { [name]: value })
  },
  duration: (text) => void milliseconds(text as '1s', 'ttl'),
  right: (text) => void parseRight(text),
  'web-socket': (text) => {
    const bytes = Buffer.from(text, 'base64')
    const none = () => {}
    const reader = new FrameReader({ text: none, ping: none, pong: none, close: none }, 1 << 20)
    for (let at = 0; at < bytes.length; at += 7) reader.read(bytes.subarray(at, at + 7))
  },
  records: (text) => {
    const changeSink = new Kernel({ limits: { events: 64, history: 64 } }).replay()
    try {
      decodeRecords(Buffer.from(text, 'base64'), changeSink, () => true)
      changeSink.check()
    } catch (error) {
      // Contradictory records are refused with an error, which the store explains.
      if (!(error instanceof TypeError)) return
      throw error
    }
  },
}

/** The socket refuses larger frames before they are parsed. */
function frameOf(text: string): ReturnType<typeof parseFrame> {
  const bytes = Buffer.from(text)
  return bytes.length > DEFAULT_STREAM.frameBytes ? [] : parseFrame(bytes, DEFAULT_STREAM)
}

const probe = new Probe()
probe.serve(run)
probe.ready({})

async function run({ parser, text }: ParserInput): Promise<Failure | undefined> {
  try {
    PARSERS[parser](expand(text))
    return undefined
  } catch (error) {
    const isRefusal =
      isLeaseholdError(error) || error instanceof MalformedError || error instanceof FrameError
    return isRefusal ? undefined : { kind: 'wrong-error', detail: `${parser}: ${describe(error)}` }
  }
}
