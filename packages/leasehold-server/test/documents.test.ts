import { readFileSync } from 'node:fs'
import type { Option } from 'commander'
import { describe, expect, it } from 'vitest'
import { EXIT, RUN_EXIT } from '../src/cli/exit-codes.ts'
import { programOf } from '../src/cli/program.ts'
import { settingsTable } from '../src/config/index.ts'

const read = (name: string) =>
  readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')

describe('docs/server.md', () => {
  it('has the table of settings that --help has', () => {
    expect(read('server.md')).toContain(settingsTable())
  })
})

describe('docs/cli.md', () => {
  const text = read('cli.md')

  it('describes every command, and only existing options', () => {
    const program = programOf([])
    const commands = program.commands.flatMap((each) => [each, ...each.commands])
    for (const { name } of program.commands.map((each) => ({ name: each.name() }))) {
      expect(text).toMatch(new RegExp(`leasehold ${name}\\b`))
    }
    const known = commands.flatMap((each) => each.options.map((option: Option) => option.long))
    known.push('--help')
    const written = [...text.matchAll(/(?<=[\s`[])--[a-z][a-z-]*/g)].map(([option]) => option)
    expect(written.filter((option) => !known.includes(option))).toEqual([])
  })

  it('lists the exit codes', () => {
    for (const code of [...Object.values(EXIT), ...Object.values(RUN_EXIT)]) {
      expect(text).toMatch(new RegExp(`^\\| ${code}\\b`, 'm'))
    }
  })
})
