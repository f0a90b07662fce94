/** Amazon's event stream encoding: a prelude, headers and a payload, each with a CRC. */

/** One event of this type, with its payload as JSON; `exception` for an error within a stream. */
export function eventFrame(type: string, payload: unknown, message: 'event' | 'exception' = 'event'): Uint8Array {
  const headers = Buffer.concat(
    [
      [message === 'event' ? ':event-type' : ':exception-type', type],
      [':content-type', 'application/json'],
      [':message-type', message],
    ].map(([name = '', value = '']) => {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(Buffer.byteLength(value))
      // 7 is the type of a string.
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ])
    }),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + headers.length + body.length, 0)
  prelude.writeUInt32BE(headers.length, 4)
  const start = Buffer.concat([prelude, crc(prelude), headers, body])
  return Buffer.concat([start, crc(start)])
}

function crc(bytes: Uint8Array): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(Bun.hash.crc32(bytes))
  return sum
}
