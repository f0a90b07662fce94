/** Reads a body of bounded length. */

/** Rejects with `tooLarge()` once it has more bytes. */
export async function readAll(
  body: ReadableStream<Uint8Array>,
  tooLarge: () => Error,
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > most) throw tooLarge()
    pieces.push(piece)
  }
  return new Uint8Array(Buffer.concat(pieces))
}
