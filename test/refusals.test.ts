/** Refusals, in every dialect: what a client got wrong is named as the client wrote it. */
import { afterAll, describe, expect, test } from 'bun:test'
import { startGateway } from './kit/gateway.ts'

const gateway = await startGateway()
afterAll(() => gateway[Symbol.asyncDispose]())

const CONTENTS = [{ role: 'user', parts: [{ text: 'Hello' }] }]
const CONTENT_PATH = '/v1beta/models/sandbox/general:generateContent'

describe('a request that no target can take is refused with the place in the body of the client', () => {
  test.each([
    ['/v1/messages', { messages: [{ role: 'user', content: [{ type: 'riddle' }] }] }, 'messages[0].content[0].type'],
    ['/v1/messages', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages[0].content[0].type'],
    [CONTENT_PATH, { contents: CONTENTS, tools: [{ functionDeclarations: 0 }] }, 'tools[0].functionDeclarations'],
    [
      CONTENT_PATH,
      { contents: CONTENTS, tools: [{ functionDeclarations: [{ name: 3 }] }] },
      'tools[0].functionDeclarations[0].name',
    ],
  ])('%s %j', async (path, body, place) => {
    const json = { model: 'sandbox/general', max_tokens: 16, system: 'Be brief.', ...body }
    const answer = await gateway.call(path, { json: path === CONTENT_PATH ? body : json })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { message: string } }
    expect(error.message).toStartWith(`"${place}" `)
  })
})

describe('a body that is no object is refused for that', () => {
  const PATHS = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens', CONTENT_PATH]
  test.each(PATHS)('%s', async (path) => {
    for (const json of [null, [], '"x"', 1]) {
      const answer = await gateway.call(path, { json })
      expect(answer.status).toBe(400)
      const { error } = (await answer.json()) as { error: { message: string } }
      expect(error.message).toStartWith('The body must be a JSON object, not ')
    }
  })
})
