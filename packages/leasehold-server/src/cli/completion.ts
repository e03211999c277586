import { Argument, Command } from 'commander'
import { EXIT_HELP } from './exit-codes.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

type Shell = (typeof SHELLS)[number]

/** `programOf` is a function because this command is itself part of the program. */
export function completionCommand(programOf: () => Command): Command {
  return new Command('completion')
    .description('Print a shell script that completes the commands and options of leasehold.')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText(
      'after',
      `
  bash  source <(leasehold completion bash)
  zsh   source <(leasehold completion zsh)
  fish  leasehold completion fish | source
${EXIT_HELP}`,
    )
    .action((shell: Shell) => {
      process.stdout.write(SCRIPTS[shell](wordsOf(programOf())))
    })
}

/** The words that can follow a path of commands: `''`, `access-token`, `access-token create`. */
type Words = ReadonlyMap<string, readonly string[]>

function wordsOf(program: Command): Words {
  const words = new Map<string, readonly string[]>()
  const add = (path: string, command: Command) => {
    const names = command.commands.map((each) => each.name())
    const choices = command.registeredArguments.flatMap((each) => each.argChoices ?? [])
    const options = command.options.flatMap((each) => (each.hidden ? [] : (each.long ?? [])))
    words.set(path, [...names, ...choices, ...options, '--help'])
    for (const each of command.commands) add(`${path} ${each.name()}`.trim(), each)
  }
  add('', program)
  return words
}

/** In all three shells, the longest path of commands on the line decides. */
const SCRIPTS: Record<Shell, (words: Words) => string> = {
  bash: (words) => `_leasehold() {
  local word=\${COMP_WORDS[COMP_CWORD]} path="" next="" i
  local -A words=(
${[...words].map(([path, next]) => `    ["=${path}"]="${next.join(' ')}"`).join('\n')}
  )
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ \${COMP_WORDS[i]} == -- ]] && { COMPREPLY=($(compgen -cf -- "$word")); return; }
    next="\${path:+$path }\${COMP_WORDS[i]}"
    [[ -v words["=$next"] ]] && path=$next
  done
  COMPREPLY=($(compgen -W "\${words["=$path"]}" -- "$word"))
}
complete -F _leasehold leasehold
`,
  zsh: (words) => `_leasehold() {
  local path_="" next="" i
  local -A words_=(
${[...words].map(([path, next]) => `    "=${path}" "${next.join(' ')}"`).join('\n')}
  )
  for ((i = 2; i < CURRENT; i++)); do
    [[ \${words[i]} == -- ]] && { _normal; return }
    next="\${path_:+$path_ }\${words[i]}"
    (( \${+words_[=$next]} )) && path_=$next
  done
  compadd -- \${=words_[=$path_]}
}
compdef _leasehold leasehold
`,
  fish: (words) =>
    `complete -c leasehold -f\n${[...words]
      .map(([path, next]) => {
        const seen = path
          .split(' ')
          .filter(Boolean)
          .map((word) => `__fish_seen_subcommand_from ${word}`)
        const condition = seen.length === 0 ? '__fish_use_subcommand' : seen.join('; and ')
        return `complete -c leasehold -n '${condition}' -a '${next.join(' ')}'`
      })
      .join('\n')}\n`,
}
