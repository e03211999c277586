import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT, readSource } from '../structure/source-files.ts'

const sim = (...args: string[]) => runNode([join(ROOT, 'sim/dist/main.js'), ...args], ROOT)

it('prints every option, and runs nothing, if called with --help', async () => {
  const { code, stdout, stderr } = await sim('--help')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const options = [...readSource('sim/main.ts').text.matchAll(/(\w+): \{ type:/g)]
  expect(options.length).toBeGreaterThan(10)
  for (const [, name] of options) expect(stdout).toContain(`--${name} `)
  expect(stdout).not.toMatch(/seeds a second/)
  expect((await sim('-h')).stdout).toBe(stdout)
})

it.each([
  ['--sed', "Unknown option '--sed'"],
  ['--recipe=lock', "recipe is 'lock'; it must be one of election, pool,"],
])('refuses %s with the reason and exit code 2', async (argument, message) => {
  const { code, stdout, stderr } = await sim(argument)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).not.toContain('    at ')
})
