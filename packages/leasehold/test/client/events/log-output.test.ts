import { describe, expect, it } from 'vitest'
import { CLIENT_EVENTS, type ClientEvents, Emitter } from '../../../src/client/events/emitter.ts'
import { checkLogger, type Logger, logTo } from '../../../src/client/events/log-output.ts'
import { LeaseholdError } from '../../../src/port/index.ts'

function open() {
  const lines: { level: string; fields: object; message: string }[] = []
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message })
  const logger: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
  const events = new Emitter<ClientEvents>(CLIENT_EVENTS)
  logTo(logger, events)
  return { events, lines }
}

const LEASE = { lease: 'l', ttl: 1000 }
const HOLD = { lease: 'l', keys: ['k'], token: 7 }

describe('a logger', () => {
  it('gets routine events as debug, recoveries as info, and problems as warn', () => {
    const { events, lines } = open()
    const broken = { lease: 'l', remaining: 1500, by: 'ops', why: 'drain' }
    events.emit('leased', LEASE)
    events.emit('acquired', { ...HOLD, waited: 5 })
    events.emit('released', HOLD)
    events.emit('lapsed', LEASE)
    events.emit('recovered', LEASE)
    events.emit('broken', broken)
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['debug', LEASE],
      ['debug', { ...HOLD, waited: 5 }],
      ['debug', HOLD],
      ['warn', LEASE],
      ['info', LEASE],
      ['warn', broken],
    ])
    expect(lines.at(-1)!.message).toContain('1.5s')
    for (const { message } of lines) expect(message).not.toBe('')
  })

  it('gets no renewals: they would hide everything else', () => {
    const { events, lines } = open()
    events.emit('renewed', LEASE)
    expect(lines).toEqual([])
  })

  it('gets a loss as a warning, and the end by close for debugging', () => {
    const { events, lines } = open()
    const claims = [{ key: 'k', token: 7 }]
    const details = { reason: 'revoked', by: 'ops', why: 'drain' } as const
    events.emit('lost', {
      lease: 'l',
      claims,
      error: new LeaseholdError('lost', 'it is gone', details),
    })
    events.emit('closed', { lease: 'l', claims })
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'debug'])
    expect(lines[0]).toEqual({
      level: 'warn',
      fields: { lease: 'l', claims, code: 'lost', reason: 'revoked', by: 'ops', why: 'drain' },
      message: 'it is gone',
    })
  })

  it('gets events of recipes at their own level, info by default', () => {
    const { events, lines } = open()
    const event = { recipe: 'cache', event: 'failed', key: 'k' } as const
    events.emit('recipe-event', { ...event, level: 'error', detail: 'loading failed' })
    events.emit('recipe-event', event)
    expect(lines).toEqual([
      { level: 'error', fields: event, message: 'loading failed' },
      { level: 'info', fields: event, message: 'cache: failed' },
    ])
  })
})

describe('an invalid logger', () => {
  const whole = { debug() {}, info() {}, warn() {}, error() {} }

  it('has a function for each level', () => {
    expect(() => checkLogger(whole)).not.toThrow()
    expect(() => checkLogger(undefined)).not.toThrow()
  })

  it.each(['debug', 'info', 'warn', 'error'])('is refused without %s', (level) => {
    expect(() => checkLogger({ ...whole, [level]: 'x' } as never)).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        message: expect.stringContaining(`has no function ${level}`),
      }),
    )
  })

  it.each([null, 'console', 5])('is refused if it is %j', (logger) => {
    expect(() => checkLogger(logger as never)).toThrowError(/has no function debug/)
  })
})
