import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { FOREIGN_COMMANDS, FOREIGN_OPTIONS } from '../../src/cli/foreign-names.ts'
import { programOf } from '../../src/cli/program.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'

/** What the user reads, and the exit code. */
async function answerTo(line: string): Promise<[string, number | null]> {
  const { stderr, code } = await runLeasehold(line.split(' '))
  return [stderr, code]
}

describe('a name of another tool', () => {
  it.each([
    ['--url http://a:7420 ls', "error: unknown option '--url'\n(Use --server instead.)\n", 2],
    [
      '--http-addr=http://a:8500 ls',
      "error: unknown option '--http-addr=http://a:8500'\n(Use --server instead.)\n",
      2,
    ],
    ['leases -o json', "error: unknown option '-o'\n(Use --json instead.)\n", 2],
    ['serve --url http://a', "error: unknown option '--url'\n(Use --host instead.)\n", 2],
    ['-v', "error: unknown option '-v'\n(Use --version instead.)\n", 2],
    [
      'lock a --nonblock -- true',
      "error: unknown option '--nonblock'\n(Use --wait 0 instead.)\n",
      125,
    ],
    [
      'watch --prefix jobs/',
      "error: unknown option '--prefix'\n(Use leasehold watch <prefix> instead.)\n",
      2,
    ],
    ['del jobs/1', "error: unknown command 'del'\n(Use leasehold revoke <key> instead.)\n", 2],
    [
      'access-token delete ci',
      "error: unknown command 'delete'\n(Use leasehold access-token revoke instead.)\n",
      2,
    ],
  ])('is answered with ours: leasehold %s', async (line, message, code) => {
    expect(await answerTo(line)).toEqual([message, code])
  })

  it('leaves the guess at a misspelt name to Commander', async () => {
    expect(await answerTo('ls --lmit 4')).toEqual([
      "error: unknown option '--lmit'\n(Did you mean --limit?)\n",
      2,
    ])
    expect(await answerTo('lock a --zone b')).toEqual(["error: unknown option '--zone'\n", 125])
  })
})

describe('the tables of names', () => {
  const program = programOf([])
  const commands: readonly Command[] = program.commands.flatMap((each) => [each, ...each.commands])

  it('name only options and commands that exist', () => {
    const options = new Set([program, ...commands].flatMap(longNames))
    const names = new Set(commands.map((each) => each.name()))
    const ours = [...FOREIGN_OPTIONS, ...FOREIGN_COMMANDS].flatMap(([, names]) => names)
    const missing = ours
      .map((name) => name.split(' ', 1)[0]!)
      .filter((name) => !options.has(name) && !names.has(name))
    expect(ours.length).toBeGreaterThan(40)
    expect(missing).toEqual([])
  })

  it('have no command that is one of ours', () => {
    const names = new Set(program.commands.flatMap((each) => [each.name(), ...each.aliases()]))
    const theirs = FOREIGN_COMMANDS.filter(([, [ours]]) => ours !== 'list').flatMap(([theirs]) =>
      theirs.split(' '),
    )
    expect(theirs.filter((name) => names.has(name))).toEqual([])
  })
})

function longNames(command: Command): string[] {
  return command.options.flatMap(({ long }) => long ?? [])
}
