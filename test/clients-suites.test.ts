/** `test/clients/run.sh`: which suites of Go, Java and Rust run, are skipped or fail; and the versions of their clients. */
import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualPage } from './kit/manual.ts'

const SCRIPT = join(import.meta.dir, 'clients/run.sh')
/** What the script itself and the start of the gateway run. */
const TOOLS =
  'bash sh env dirname readlink uname mktemp timeout sed tail head grep seq sleep cat rm find cmp node'.split(' ')

/** The only folder on the PATH: no toolchain but those that a test puts there. */
let tools: string
beforeEach(() => {
  tools = mkdtempSync(join(tmpdir(), 'gatehouse-tools-'))
  for (const name of TOOLS) {
    const path = Bun.which(name)
    if (path !== null) symlinkSync(path, join(tools, name))
  }
})
afterEach(() => rmSync(tools, { recursive: true }))

function toolchain(name: string, program: string): void {
  writeFileSync(join(tools, name), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
}

async function run(...languages: string[]): Promise<{ output: string; code: number }> {
  const child = Bun.spawn([Bun.which('bash') ?? 'bash', SCRIPT, ...languages], {
    env: { PATH: tools, HOME: tools },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { output: output + errors, code: await child.exited }
}

describe('test/clients/run.sh', () => {
  it('skips each language whose toolchain is not installed', async () => {
    expect(await run()).toEqual({
      output: [
        'go: skipped: go is not installed\n',
        'java: skipped: javac is not installed\n',
        'rust: skipped: cargo is not installed\n',
      ].join(''),
      code: 0,
    })
  })

  it('skips a language whose dependencies cannot be downloaded, and shows why', async () => {
    toolchain('go', 'echo "dial tcp: no such host" >&2; exit 1')
    expect(await run('go')).toEqual({
      output: 'dial tcp: no such host\ngo: skipped: dependencies could not be downloaded\n',
      code: 0,
    })
  })

  it('gives a suite a gateway whose sandbox answers, and passes with it', async () => {
    const headers = '{ authorization: "Bearer " + process.env.GATEHOUSE_TOKEN }'
    const request = `fetch(process.env.GATEHOUSE_ORIGIN + "/v1/models", { headers: ${headers} })`
    const program = `${request}.then((answer) => answer.text()).then(console.log)`
    toolchain('go', `case $1 in test) node -e '${program}' ;; esac`)
    const { output, code } = await run('go')
    expect(output).toContain('"sandbox/general"')
    expect(output).toEndWith('go: passed\n')
    expect(code).toBe(0)
  })

  it('fails when one suite fails, and still runs the others', async () => {
    toolchain('go', 'case $1 in test) exit 1 ;; esac')
    expect(await run('go', 'rust')).toEqual({
      output: 'rust: skipped: cargo is not installed\ngo: FAILED\n',
      code: 1,
    })
  })

  it('refuses the name of another language', async () => {
    const { output, code } = await run('cobol')
    expect(output).toContain('there is no "cobol"')
    expect(code).toBe(2)
  })
})

describe('the clients of other languages', () => {
  const pinned = (file: string) => readFileSync(join(import.meta.dir, 'clients', file), 'utf8')
  const page = manualPage('tested-clients.md')
  const versionOnPage = (client: string) => page.split(`\n| ${client} | `)[1]?.split(' |')[0]

  it.each([
    ['`github.com/openai/openai-go/v3`', 'go/go.mod', /openai-go\/v3 v(\S+)/],
    ['`github.com/anthropics/anthropic-sdk-go`', 'go/go.mod', /anthropic-sdk-go v(\S+)/],
    [
      '`com.openai:openai-java-client-okhttp`',
      'java/pom.xml',
      /openai-java-client-okhttp<\/artifactId>\s*<version>([^<]+)/,
    ],
    ['`async-openai` for Rust', 'rust/Cargo.lock', /name = "async-openai"\nversion = "([^"]+)"/],
  ])('are named on the page with the version that is tested: %s', (client, file, version) => {
    expect(versionOnPage(client)).toBe(version.exec(pinned(file))?.[1] ?? 'none in the file')
  })
})
