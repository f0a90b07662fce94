/** `gatehouse serve` as a process of its own: started with a configuration, read by its log, signalled. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const COMMAND = join(import.meta.dir, '../../bin/gatehouse')
export const SERVE_TOKEN = 'sk-0123456789012345678901234567890123456789'

type Line = { event: string; [field: string]: unknown }

type ServeParts = {
  /** The working directory, with gatehouse.yaml. */
  directory: string
  /** 0: a free one. */
  port?: number
  environment?: Record<string, string>
  /** Default: the one of this checkout. */
  command?: string
}

export type ServeProcess = {
  url: string
  port: number
  child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  lines: Line[]
  /** Resolves with the lines of this event once there are so many. */
  until(event: string, count?: number): Promise<Line[]>
  /** A chat call; each on a connection of its own. */
  chat(model: string): Promise<Response>
}

export function serveDirectory(): { directory: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-serve-'))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** In one step, as a reload expects it. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

export const writeConfig = (directory: string, config: object): void =>
  replaceFile(join(directory, 'gatehouse.yaml'), JSON.stringify(config))

/** Resolves once it listens; throws what it has printed where it ends instead. */
export async function startServe({
  directory,
  port = 0,
  environment = {},
  command = COMMAND,
}: ServeParts): Promise<ServeProcess> {
  const child = Bun.spawn([command, 'serve', '--json', '--port', String(port)], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', GATEHOUSE_BOOTSTRAP_TOKEN: SERVE_TOKEN, ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const read = readLines(child.stderr, (line) => {
    lines.push(JSON.parse(line) as Line)
    for (const look of waiting) look()
  })
  const started = Promise.withResolvers<string>()
  void readLines(child.stdout, started.resolve)
  const ended = child.exited.then(async (code) => {
    await read
    throw new Error(`serve ended with ${code}: ${JSON.stringify(lines)}`)
  })
  ended.catch(() => {})
  const { url } = JSON.parse(await Promise.race([started.promise, ended])) as { url: string }
  return {
    url,
    port: Number(new URL(url).port),
    child,
    lines,
    until: (event, count = 1) =>
      new Promise((resolve) => {
        const look = () => {
          const matching = lines.filter((line) => line.event === event)
          if (matching.length < count) return
          waiting.delete(look)
          resolve(matching)
        }
        waiting.add(look)
        look()
      }),
    chat: (model) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        keepalive: false,
        headers: { authorization: `Bearer ${SERVE_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
      }),
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of stream) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    for (const line of parts) onLine(line)
  }
}
