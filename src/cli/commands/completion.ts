/** `gatehouse completion`: a script that completes commands and options, generated from the help of every command. */
import { UsageError } from '../arguments.ts'
import { plainCommand } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const HELP = `Usage: gatehouse completion <bash | zsh | fish>

Prints a script that completes the commands and options of gatehouse.

Options:
  --json    print the commands, with their actions and options, as one line of JSON

Examples:
  source <(gatehouse completion bash)
  gatehouse completion zsh > ~/.zfunc/_gatehouse
  gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish
`

const SHELLS = ['bash', 'zsh', 'fish'] as const

type Commands = Readonly<
  Record<string, { summary: string; load(): Promise<{ run(args: string[], terminal: Terminal): Promise<number> }> }>
>

/** One command: its actions, such as `create` of `token`, and all its options. */
type Described = { name: string; summary: string; actions: string[]; options: string[] }

export const completionOf = (commands: Commands) =>
  plainCommand('completion', HELP, {
    positionals: [`a shell: ${SHELLS.join(', ')}`],
    async run(given, terminal) {
      const shell = SHELLS.find((one) => one === given.positionals[0])
      if (shell === undefined) throw new UsageError('completion', `knows the shells ${SHELLS.join(', ')}`)
      const described = await Promise.all(
        Object.entries(commands).map(([name, command]) => describe(name, command, terminal)),
      )
      const script = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell]
      return { data: { commands: described }, text: () => script(described) }
    },
  })

/** A command names its actions in its usage, and all its options in its help. */
async function describe(name: string, { summary, load }: Commands[string], terminal: Terminal): Promise<Described> {
  let help = ''
  const { run: command } = await load()
  const out = (text: string) => {
    help += text
  }
  await command(['--help'], { ...terminal, out, err: () => {} })
  const usage = new RegExp(`^Usage: gatehouse ${name} [<\\[]([a-z-]+(?: \\| [a-z-]+)*)[>\\]]`).exec(help)?.[1]
  const options = new Set(['--help', '--json', ...[...help.matchAll(/--[a-z][a-z-]*[a-z]/g)].map(([option]) => option)])
  return {
    name,
    summary,
    actions: (usage?.split(' | ') ?? []).filter((action) => action !== 'options'),
    options: [...options].sort(),
  }
}

const bashScript = (commands: Described[]): string => `# bash completion of gatehouse
_gatehouse() {
  local word="\${COMP_WORDS[COMP_CWORD]}" command="\${COMP_WORDS[1]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ name }) => name).join(' ')} help"
  else
    case "$command" in
${commands.map(({ name, actions, options }) => `      ${name}) case "$word" in -*) words="${options.join(' ')}" ;; *) [ "$COMP_CWORD" -eq 2 ] && words="${actions.join(' ')}" ;; esac ;;`).join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _gatehouse gatehouse
`

const zshScript = (commands: Described[]): string => `#compdef gatehouse
# zsh completion of gatehouse
_gatehouse() {
  local -a commands words
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
${commands.map(({ name, actions, options }) => `    ${name}) if [[ "$PREFIX" == -* ]]; then compadd -- ${options.join(' ')}; elif (( CURRENT == 3 )); then compadd -- ${actions.join(' ')} || _files; else _files; fi ;;`).join('\n')}
  esac
}
compdef _gatehouse gatehouse
`

const fishScript = (commands: Described[]): string =>
  [
    '# fish completion of gatehouse',
    ...commands.flatMap(({ name, summary, actions, options }) => [
      `complete -c gatehouse -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...(actions.length === 0
        ? []
        : [`complete -c gatehouse -n '__fish_seen_subcommand_from ${name}' -a ${quoted(actions.join(' '))}`]),
      ...options.map(
        (option) => `complete -c gatehouse -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`,
      ),
    ]),
    '',
  ].join('\n')

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
