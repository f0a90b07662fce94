/** Alerts by mail, through a real SMTP server on loopback. */
import { afterEach, describe, expect, it } from 'bun:test'
import { createServer } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { manualClock } from '../../../test/kit/clock.ts'
import type { EmailConfig } from '../../config/schema/alerts-schema.ts'
import { createDelivery } from './channels.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const BODY = {
  type: 'provider.key_refused',
  timestamp: '2026-01-01T00:00:00.000Z',
  message: 'The provider v refuses the key of this gateway.',
  data: { provider: 'v', key: 'one\r\nBcc: everybody@example.com' },
}
const ALERT = { alert_id: 'alert_1', channel: 'email', created_at: 0, due_ms: 0, body: JSON.stringify(BODY) } as const

/** What the server has received, and its port. */
async function mailServer(options: SMTPServerOptions = {}) {
  const mails: { to: string[]; text: string }[] = []
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    onData(stream, { envelope }, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        mails.push({ to: envelope.rcptTo.map(({ address }) => address), text: Buffer.concat(chunks).toString() })
        callback()
      })
    },
    ...options,
  })
  server.on('error', () => {})
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  closing.push(() => new Promise<void>((done) => void server.close(done)))
  const address = server.server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { mails, port: address.port }
}

const settingsOf = (port: number, more: Partial<EmailConfig> = {}): EmailConfig => ({
  host: '127.0.0.1',
  port,
  tls: 'none',
  from: 'gatehouse@example.com',
  to: ['ops@example.com', 'money@example.com'],
  ...more,
})

function deliver(email: EmailConfig | undefined, signal = new AbortController().signal) {
  const guardedFetch = () => Promise.reject(new Error('no HTTP'))
  const settings = () => (email ? { email } : {})
  const send = createDelivery({ settings, guardedFetch, clock: manualClock() })
  return send(ALERT, { signal, stopping: () => false })
}

describe('a mail', () => {
  it('goes to every receiver, with a subject and the same id each time it is sent', async () => {
    const { mails, port } = await mailServer()
    const settings = settingsOf(port)
    expect([await deliver(settings), await deliver(settings)]).toEqual([{ status: 200 }, { status: 200 }])
    expect(mails.map(({ to }) => to)).toEqual(Array(2).fill(['ops@example.com', 'money@example.com']))
    for (const { text } of mails) {
      expect(text).toContain('Subject: Gatehouse: The provider v refuses the key of this gateway.')
      expect(text).toContain('Message-ID: <alert_1@example.com>')
      expect(text).toContain('provider: v')
      expect(text).not.toMatch(/^Bcc:/m)
    }
  })

  it('is sent with the user and the password', async () => {
    const seen: unknown[] = []
    const { port } = await mailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth({ username, password }, _, callback) {
        seen.push([username, password])
        if (password === 'right') callback(null, { user: username })
        else callback(new Error(`wrong password ${password}`))
      },
    })
    expect(await deliver(settingsOf(port, { user: 'gatehouse', password: 'right' }))).toEqual({ status: 200 })
    expect(seen).toEqual([['gatehouse', 'right']])
    expect(await deliver(settingsOf(port, { user: 'gatehouse', password: 'secret' }))).toEqual({
      status: 535,
      error: 'EAUTH',
    })
  })

  it('is encrypted by STARTTLS unless the operator says otherwise: a server without it gets nothing', async () => {
    const { mails, port } = await mailServer({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'] })
    const { tls: _, ...settings } = settingsOf(port)
    const answer = await deliver(settings)
    expect(answer?.status).not.toBe(200)
    expect(mails).toEqual([])
  })

  it('that a server refuses is a failed attempt, and so is a server that is away or silent', async () => {
    const { port } = await mailServer({
      onRcptTo(_, __, callback) {
        callback(Object.assign(new Error('full'), { responseCode: 452 }))
      },
    })
    expect(await deliver(settingsOf(port))).toMatchObject({ status: 452 })
    const silent = createServer(() => {})
    const { promise, resolve } = Promise.withResolvers<void>()
    silent.listen(0, '127.0.0.1', resolve)
    await promise
    closing.push(() => void silent.close())
    const address = silent.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const late = new AbortController()
    silent.on('connection', () => late.abort())
    expect(await deliver(settingsOf(address.port), late.signal)).toEqual({ status: 0, error: 'timeout' })
    expect(await deliver(undefined)).toBeUndefined()
  })
})
