/** An MCP server in the gateway whose tools are operations of an HTTP API, as its OpenAPI document describes them. */
import { Server } from '@modelcontextprotocol/server'
import type { McpServerConfig } from '../../config/schema/mcp-schema.ts'
import { isRecord, parseJson } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { PackageFetch } from '../upstream/transport-fetch.ts'
import { type Operation, operationsOf, requestOf } from './openapi-tools.ts'

type OpenApiParts = { name: string; openapi: NonNullable<McpServerConfig['openapi']>; fetch: PackageFetch }

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

/** What fails at the API is a result, which a model may read. */
async function answerOf(sending: Promise<Response>) {
  try {
    const response = await sending
    return { response, body: await response.text() }
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { failure: thrown.message }
    throw thrown
  }
}

export function createOpenApiServer({ name, openapi, fetch }: OpenApiParts): Server {
  const { document, base_url, operations: chosen } = openapi
  const server = new Server({ name, version: '1.0.0' }, { capabilities: { tools: {} } })
  let operations: Operation[] | undefined

  async function read(): Promise<Operation[]> {
    const response = await fetch(document, { headers: { accept: 'application/json' } })
    const parsed = response.ok ? parseJson(await response.text()) : undefined
    if (!isRecord(parsed) || !isRecord(parsed.paths)) {
      throw new GatewayError(
        'bad_upstream_response',
        `The OpenAPI document of the MCP server "${name}" could not be read (status ${response.status}); it must be JSON.`,
      )
    }
    operations = operationsOf(parsed, chosen)
    return operations
  }

  server.setRequestHandler('tools/list', async () => ({
    tools: (await read()).map(({ name, description, inputSchema, isReadOnly }) => ({
      name,
      description,
      inputSchema,
      annotations: { readOnlyHint: isReadOnly, openWorldHint: true },
    })),
  }))
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const operation = (operations ?? (await read())).find((one) => one.name === params.name)
    if (!operation) return { ...text(`There is no operation "${params.name}".`), isError: true }
    let request: ReturnType<typeof requestOf>
    try {
      request = requestOf(operation, params.arguments ?? {}, base_url)
    } catch (thrown) {
      return { ...text((thrown as Error).message), isError: true }
    }
    const { url, ...init } = request
    const answered = await answerOf(fetch(url, { ...init, signal: mcpReq.signal }))
    if ('failure' in answered) return { ...text(answered.failure), isError: true }
    const { response, body } = answered
    if (!response.ok) return { ...text(`The API answered with status ${response.status}. ${body}`), isError: true }
    const value = parseJson(body)
    return {
      ...text(body === '' ? `Status ${response.status}.` : body),
      ...(isRecord(value) && { structuredContent: value }),
    }
  })
  return server
}
