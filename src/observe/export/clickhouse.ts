/** Sends statements to ClickHouse by its HTTP interface: https://clickhouse.com/docs/interfaces/http */
import { readAll } from '../../kit/read-all.ts'

type ClickHouseSettings = {
  /** May have settings of ClickHouse in its query. */
  url: string
  username?: string | undefined
  password?: string | undefined
}

type ClickHouse = {
  /** Rejects with `ClickHouseError`, or as fetch does. `rows`: lines of JSON that follow an INSERT. */
  run(statement: string, options: { rows?: string; signal?: AbortSignal | undefined }): Promise<void>
  select(statement: string, max_seconds: number): Promise<Record<string, unknown>[]>
}

type Answer = Awaited<ReturnType<typeof fetch>>

/** Its own words are not repeated: they may hold what was sent. */
export class ClickHouseError extends Error {
  readonly code: number
  constructor(status: number, code: number) {
    super(`ClickHouse answered ${status}${code === 0 ? '' : `, code ${code}`}.`)
    this.name = 'ClickHouseError'
    this.code = code
  }
}

/** The largest page of the request log has a tenth of it. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Numbers as numbers; the status of an answer is that of the whole statement; columns of later versions are no error. */
const SETTINGS = {
  output_format_json_quote_64bit_integers: '0',
  wait_end_of_query: '1',
  input_format_skip_unknown_fields: '1',
}

export function createClickHouse({ url, username, password }: ClickHouseSettings): ClickHouse {
  const headers = {
    ...(username !== undefined && { 'x-clickhouse-user': username }),
    ...(password !== undefined && { 'x-clickhouse-key': password }),
  }
  async function send(query: Record<string, string>, body: string, signal?: AbortSignal): Promise<Answer> {
    const address = new URL(url)
    for (const [name, value] of Object.entries({ ...SETTINGS, ...query })) {
      if (!address.searchParams.has(name)) address.searchParams.set(name, value)
    }
    // A redirect would take the password elsewhere.
    const response = await fetch(address, {
      method: 'POST',
      headers,
      body,
      redirect: 'manual',
      ...(signal && { signal }),
    })
    if (response.status === 200) return response
    const code = Number(response.headers.get('x-clickhouse-exception-code') ?? (await codeIn(response)))
    throw new ClickHouseError(response.status, Number.isFinite(code) ? code : 0)
  }
  return {
    async run(statement, { rows, signal }) {
      const response = await (rows === undefined
        ? send({}, statement, signal)
        : send({ query: statement }, rows, signal))
      await response.body?.cancel()
    },
    async select(statement, max_seconds) {
      const signal = AbortSignal.timeout((max_seconds + 1) * 1_000)
      const response = await send(
        { max_execution_time: String(max_seconds) },
        `${statement} FORMAT JSONEachRow`,
        signal,
      )
      return linesOf(await boundedText(response))
    },
  }
}

/** Versions before 19 have no header for it. */
async function codeIn(response: Answer): Promise<string> {
  const text = await boundedText(response).catch(() => '')
  return /^Code: (\d{1,5})/.exec(text)?.[1] ?? '0'
}

async function boundedText(response: Answer): Promise<string> {
  if (!response.body) return ''
  const tooLarge = () => new Error(`ClickHouse answered with more than ${MAX_ANSWER_BYTES} bytes.`)
  return new TextDecoder().decode(await readAll(response.body, tooLarge, MAX_ANSWER_BYTES))
}

const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** A text as a literal of its SQL, of which a quote and a backslash have a meaning. */
export const literal = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&').replaceAll('\0', '')}'`
