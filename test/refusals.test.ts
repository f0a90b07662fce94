/** Errors in every dialect: they name the invalid field by its path in the client's request. */
import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from './kit/gateway.ts'

const gateway = await startGateway()
afterAll(() => gateway[Symbol.asyncDispose]())

const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const CONTENT_PATH = '/v1beta/models/sandbox/general:generateContent'

describe("a request that no target supports gets an error with the path in the client's body", () => {
  test.each([
    ['/v1/messages', { messages: [{ role: 'user', content: [{ type: 'riddle' }] }] }, 'messages[0].content[0].type'],
    ['/v1/messages', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages[0].content[0].type'],
    [CONTENT_PATH, { contents: CONTENTS, tools: [{ functionDeclarations: 0 }] }, 'tools[0].functionDeclarations'],
    [
      CONTENT_PATH,
      { contents: CONTENTS, tools: [{ functionDeclarations: [{ name: 3 }] }] },
      'tools[0].functionDeclarations[0].name',
    ],
  ])('%s %j', async (path, body, field) => {
    const json = { model: 'sandbox/general', max_tokens: 16, system: 'Be brief.', ...body }
    const answer = await gateway.call(path, { json: path === CONTENT_PATH ? body : json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith(`"${field}" `)
  })
})

describe('a body that is not an object gets 400', () => {
  const PATHS = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens', CONTENT_PATH]
  const cases = PATHS.flatMap((path) => [null, [], '"x"', 1].map((json) => [path, json] as const))
  test.each(cases)('%s: %j', async (path, json) => {
    const answer = await gateway.call(path, { json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith('The body must be a JSON object, not ')
  })
})
