/** A WebSocket whose client sends messages and reads nothing. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../../test/kit/clock.ts'
import { CLOSE } from '../../../http/socket.ts'
import { createLog } from '../../../kit/log.ts'
import { responsesSocket } from './responses-socket.ts'

const MAX_BODY_BYTES = 1_000

function open(buffered: number) {
  const clock = manualClock()
  const log = createLog({ clock, level: 'error', pretty: false, write: () => {} })
  const sent: string[] = []
  const closes: number[] = []
  const socket = responsesSocket({ settings: { max_body_bytes: MAX_BODY_BYTES }, clock, log })({
    connection_id: 'conn',
    call: () => Promise.reject(new Error('not expected')),
    onClosed: () => {},
  })
  socket.open({
    send: (text) => void sent.push(text),
    buffered: () => buffered,
    close: (code) => void closes.push(code),
  })
  return { socket, sent, closes }
}

const MESSAGES = [
  ['an unknown message', { type: 'x' }],
  ['a message that is no object', []],
  ['input for a response that is being generated', { type: 'response.steer', input: 'Left.' }],
] as const

test.each(MESSAGES)('%s is answered while the unread answers are no longer than a body', (_, message) => {
  const { socket, sent, closes } = open(MAX_BODY_BYTES)
  socket.message(JSON.stringify(message))
  expect([sent.length, closes]).toEqual([1, []])
})

test.each(MESSAGES)('%s ends the connection of a client that reads no answers', (_, message) => {
  const { socket, sent, closes } = open(MAX_BODY_BYTES + 1)
  socket.message(JSON.stringify(message))
  expect([sent.length, closes]).toEqual([0, [CLOSE.policy]])
})
