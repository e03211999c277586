import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'

const library = new URL('../../../src/index.ts', import.meta.url).href

/** Runs a separate program with the library, and returns how it ended. */
function run(program: string): Promise<{ code: number | null; output: string; ms: number }> {
  const text = `import { Leasehold } from ${JSON.stringify(library)}\n${program}`
  const began = performance.now()
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', text],
    { cwd: fileURLToPath(new URL('../../..', import.meta.url)), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    output += data
  })
  const killer = setTimeout(() => child.kill('SIGKILL'), 15_000)
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(killer)
      resolve({ code, output, ms: performance.now() - began })
    })
  })
}

describe('a process', () => {
  it('ends by itself while it holds', async () => {
    const { code, output } = await run(`
      const leasehold = await Leasehold.open('memory:')
      const locks = [
        await leasehold.lock('a'),
        await leasehold.lock('b', { ttl: '1s', maxHold: '1h' }),
        await leasehold.lock('c', { wait: '1h' }),
      ]
      locks[0].signal.addEventListener('abort', () => console.log('aborted'))
      console.log('holding')
    `)
    expect(output).toBe('holding\n')
    expect(code).toBe(0)
  })

  it('runs while it waits, and no longer', async () => {
    const { code, output } = await run(`
      const leasehold = await Leasehold.open('memory:')
      await leasehold.lock('a')
      leasehold.lock('a', { wait: '300ms' }).catch((error) => console.log(error.code))
    `)
    expect(output).toBe('timeout\n')
    expect(code).toBe(0)
  })

  it('runs while it waits without a limit', async () => {
    const { code, output } = await run(`
      const leasehold = await Leasehold.open('memory:')
      const lock = await leasehold.lock('a')
      setTimeout(() => lock.release(), 300).unref()
      const next = await leasehold.lock('a')
      console.log(next.held)
    `)
    expect(output).toBe('true\n')
    expect(code).toBe(0)
  })
})

describe('an event loop that is stalled in truth', () => {
  it('finds the lock lost on the first statement after it', async () => {
    const leasehold = await Leasehold.open('memory:')
    const lock = await leasehold.lock('k', { ttl: 200 })
    const { signal } = lock
    expect(lock.held).toBe(true)
    const until = performance.now() + 300
    while (performance.now() < until);
    expect(lock.held).toBe(false)
    expect(signal.aborted).toBe(true)
    await leasehold.close()
  })
})
