import { describe, expect, it, vi } from 'vitest'
import { Emitter } from '../../../src/client/events/emitter.ts'

interface Events {
  up: number
  down: string
}

describe('listeners', () => {
  it('are called in the order of their registration, with the event', () => {
    const emitter = new Emitter<Events>({ up: true, down: true })
    const calls: unknown[] = []
    emitter.on('up', (n) => calls.push(['first', n]))
    emitter.on('up', (n) => calls.push(['second', n]))
    emitter.on('down', (s) => calls.push(s))
    emitter.emit('up', 5)
    expect(calls).toEqual([
      ['first', 5],
      ['second', 5],
    ])
  })

  it('may be added twice and end one at a time', () => {
    const emitter = new Emitter<Events>({ up: true, down: true })
    let calls = 0
    const listener = () => calls++
    const end = emitter.on('up', listener)
    emitter.on('up', listener)
    emitter.emit('up', 1)
    expect(calls).toBe(2)
    end()
    end()
    emitter.emit('up', 1)
    expect(calls).toBe(3)
  })

  it('that are added or end while they are called take effect with the next event', () => {
    const emitter = new Emitter<Events>({ up: true, down: true })
    const calls: string[] = []
    const end = emitter.on('up', () => {
      calls.push('once')
      end()
      emitter.on('up', () => calls.push('later'))
    })
    emitter.emit('up', 1)
    expect(calls).toEqual(['once'])
    emitter.emit('up', 1)
    expect(calls).toEqual(['once', 'later'])
  })

  it('are known to be there or not', () => {
    const emitter = new Emitter<Events>({ up: true, down: true })
    expect(emitter.hasListeners('up')).toBe(false)
    const end = emitter.on('up', () => {})
    expect([emitter.hasListeners('up'), emitter.hasListeners('down')]).toEqual([true, false])
    end()
    expect(emitter.hasListeners('up')).toBe(false)
  })

  it('that throw are warned of, and the others are called', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const emitter = new Emitter<Events>({ up: true, down: true })
    let called = false
    const error = new TypeError('bad listener')
    emitter.on('up', () => {
      throw error
    })
    emitter.on('up', () => {
      throw 'just a string'
    })
    emitter.on('up', () => {
      called = true
    })
    emitter.emit('up', 1)
    const warnings = warn.mock.calls.map(([warning]) => warning)
    warn.mockRestore()
    expect(called).toBe(true)
    expect(warnings[0]).toBe(error)
    expect(warnings[1]).toEqual(new Error('just a string'))
  })
})
