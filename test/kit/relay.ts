/** A port that passes bytes to a port of loopback, and can be cut: then bytes and ends wait, as in a network that lost its link. */
type Peer = { other?: Bun.Socket<Peer>; waiting: Buffer[] }

export type Relay = ReturnType<typeof listenForRelay>

/** Bytes wait in memory while the other side does not take them: a test sends few. */
export function listenForRelay(hostname: string, port: number) {
  let isCut = false
  const sockets = new Set<Bun.Socket<Peer>>()
  const ended = new Set<Bun.Socket<Peer>>()
  const flush = (socket: Bun.Socket<Peer>) => {
    const { waiting } = socket.data
    for (let first = waiting[0]; first !== undefined && !isCut; first = waiting[0]) {
      const written = socket.write(first)
      if (written < first.length) {
        waiting[0] = first.subarray(Math.max(0, written))
        return
      }
      waiting.shift()
    }
  }
  const pass = (socket: Bun.Socket<Peer>, bytes: Buffer) => {
    const { other } = socket.data
    if (other === undefined) socket.data.waiting.push(Buffer.from(bytes))
    else {
      other.data.waiting.push(Buffer.from(bytes))
      flush(other)
    }
  }
  const end = (socket: Bun.Socket<Peer>) => {
    sockets.delete(socket)
    if (isCut) ended.add(socket)
    else socket.data.other?.end()
  }
  const server = Bun.listen<Peer>({
    hostname,
    port: 0,
    socket: {
      open(client) {
        client.data = { waiting: [] }
        sockets.add(client)
        void Bun.connect<Peer>({
          hostname: '127.0.0.1',
          port,
          data: { other: client, waiting: [] },
          socket: {
            open(server) {
              sockets.add(server)
              server.data.waiting.push(...client.data.waiting.splice(0))
              client.data.other = server
              flush(server)
            },
            data: pass,
            drain: flush,
            close: end,
            error: end,
          },
        }).catch(() => client.end())
      },
      data: pass,
      drain: flush,
      close: end,
      error: end,
    },
  })
  return {
    port: server.port,
    stop: (force?: boolean) => server.stop(force),
    /** Nothing passes, and neither side is told. */
    cut() {
      isCut = true
    },
    /** What was sent meanwhile arrives late, also of a side that has closed its connection. */
    mend() {
      isCut = false
      for (const socket of sockets) flush(socket)
      for (const socket of ended) end(socket)
      ended.clear()
    },
  }
}
