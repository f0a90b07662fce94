/** Puts TLS before a port, with a certificate that signs itself, for clients that insist on `https` or `wss`. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { connect } from 'node:net'
import { createServer } from 'node:tls'

/** DER (ITU-T X.690): tag, length, content. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts)

/** A certificate (RFC 5280) of `localhost`, and its key. */
function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex'))) // ecdsa-with-SHA256
  const common = sequence(der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from('localhost')))
  const name = sequence(der(0x31, common))
  const validity = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z')))
  const info = publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(der(0x02, Buffer.from([1])), algorithm, name, validity, name, info)
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey))
  const text = sequence(body, algorithm, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
  }
}

/** `url`: as the given one, with `https` and another port. */
export async function withTls(url: string): Promise<{ url: string; close(): void }> {
  const { port, pathname } = new URL(url)
  const server = createServer(selfSigned(), (client) => {
    const plain = connect(Number(port), '127.0.0.1')
    plain.pipe(client).pipe(plain)
    for (const socket of [plain, client]) {
      socket.on('error', () => {})
      socket.on('close', () => {
        plain.destroy()
        client.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const own = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `https://127.0.0.1:${own}${pathname}`, close: () => void server.close() }
}
