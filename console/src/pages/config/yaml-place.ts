/** Finds where the cursor stands in a YAML text that need not be complete: the path of the node, and what is typed of it. */

export type Step = string | number
export type Place = {
  /** Of the mapping whose key is typed, or of the value. */
  path: Step[]
  /** A node may be either: a value, or the first key of a mapping. */
  accepts: 'key' | 'value' | 'node'
  /** Where what is typed begins and ends. */
  from: number
  to: number
  /** The column of a key outside of braces: where its own keys stand two columns further. */
  column: number | undefined
  /** Whether the text goes on with the colon of the key. */
  hasColon: boolean
}
type Frame = { column: number; kind: 'map' | 'seq'; path: Step[]; step: Step }
type Flow = { kind: '{' | '['; path: Step[]; step: Step | undefined; tokenAt: number }

const KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s'"#{}[\],&*!|>%@][^#\n]*?)\s*:(?=\s|$)/
const FLOW_KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s'"#{}[\],][^#{}[\],\n]*?)\s*:(?=[\s{[]|$)/
const BLOCK_SCALAR = /^[|>][+-]?\d*[+-]?\s*(?:#.*)?$/

export const pathText = (path: readonly Step[]): string => JSON.stringify(path)

/** The keys of each mapping by `pathText` of its path, and the place of the cursor where something can be typed. */
export function readYaml(text: string, cursor: number): { place: Place | undefined; keys: Map<string, Set<string>> } {
  const keys = new Map<string, Set<string>>()
  const frames: Frame[] = []
  let flow: Flow[] = []
  let place: Place | undefined
  /** Lines that are indented further than this are the text of a block scalar. */
  let scalarColumn: number | undefined

  const addKey = (path: Step[], key: string) => {
    const name = pathText(path)
    keys.set(name, (keys.get(name) ?? new Set()).add(key))
  }
  const childOf = (frame: Frame | undefined): Step[] => (frame ? [...frame.path, frame.step] : [])
  /** The frame of a key, or of an item, at this column; the frames that it ends are left out. */
  const framesAt = (column: number, kind: Frame['kind']) =>
    frames.filter(
      (frame) => frame.column < column || (frame.column === column && (kind === 'seq' || frame.kind === 'map')),
    )
  const setFrames = (kept: Frame[]) => frames.splice(0, frames.length, ...kept)
  const placeAt = (part: Pick<Place, 'path' | 'accepts' | 'from'> & { column?: number }): Place => {
    const rest = /^[\w-]*/.exec(text.slice(cursor))?.[0].length ?? 0
    const to = cursor + (part.from < cursor ? rest : 0)
    return { ...part, column: part.column, to, hasColon: /^\s*:/.test(text.slice(to)) }
  }

  /** Reads flow collections from here to the end of the line. */
  function readFlow(at: number, end: number): void {
    for (let index = at; index < end && flow.length > 0; ) {
      const top = flow.at(-1) as Flow
      const char = text[index] as string
      if (char === '#' && /\s/.test(text[index - 1] ?? ' ')) return
      if (char === ' ') index++
      else if (char === ',') {
        top.step = top.kind === '[' ? Number(top.step) + 1 : undefined
        top.tokenAt = ++index
      } else if (char === '{' || char === '[') {
        const path = [...top.path, ...(top.step === undefined ? [] : [top.step])]
        flow.push({ kind: char, path, step: char === '[' ? 0 : undefined, tokenAt: ++index })
      } else if (char === '}' || char === ']') {
        flow.pop()
        index++
      } else {
        const rest = text.slice(index, end)
        const key = top.kind === '{' && top.step === undefined ? FLOW_KEY.exec(rest) : null
        if (key) {
          top.step = unquoted(key[1] as string)
          if (!(index <= cursor && cursor <= index + key[0].length - 1)) addKey(top.path, top.step)
          index += key[0].length
          top.tokenAt = index
        } else index += /^("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?|[^\s,{}[\]]+)/.exec(rest)?.[0].length ?? 1
      }
    }
  }

  function flowPlace(): Place | undefined {
    const top = flow.at(-1)
    if (!top) return undefined
    const from = top.tokenAt + (/^\s*/.exec(text.slice(top.tokenAt, cursor))?.[0].length ?? 0)
    if (/^["'#]/.test(text.slice(from, cursor))) return undefined
    if (top.kind === '{' && top.step === undefined) return placeAt({ path: top.path, accepts: 'key', from })
    return placeAt({ path: [...top.path, top.step as Step], accepts: 'value', from })
  }

  for (let start = 0; start <= text.length; ) {
    const next = text.indexOf('\n', start)
    const end = next === -1 ? text.length : next
    const hasCursor = cursor >= start && cursor <= end
    if (flow.length > 0) {
      if (hasCursor) {
        // Read as far as the cursor for its place, then from there on for the keys that follow.
        const before = flow.map((one) => ({ ...one }))
        readFlow(start, cursor)
        place = isInComment(text.slice(start, cursor)) ? undefined : flowPlace()
        flow = before
      }
      readFlow(start, end)
    } else readLine(start, end, hasCursor)
    start = end + 1
  }
  return { place, keys }

  function readLine(start: number, end: number, hasCursor: boolean): void {
    const line = text.slice(start, end)
    let column = line.length - line.trimStart().length
    if (scalarColumn !== undefined) {
      if (line.trim() === '' || column > scalarColumn) return
      scalarColumn = undefined
    }
    const isHere = hasCursor && !isInComment(text.slice(start, cursor))
    if (line.trim() === '' || line.trimStart().startsWith('#')) {
      if (isHere) place = keyPlace(cursor, cursor - start)
      return
    }
    for (let dash = /^-( +|$)/.exec(line.slice(column)); dash; dash = /^-( +|$)/.exec(line.slice(column))) {
      if (hasCursor && cursor < start + column + dash[0].length) return
      const kept = framesAt(column, 'seq')
      const top = kept.at(-1)
      if (top?.column === column && top.kind === 'seq') kept[kept.length - 1] = { ...top, step: Number(top.step) + 1 }
      else kept.push({ column, kind: 'seq', path: childOf(top), step: 0 })
      setFrames(kept)
      column += dash[0].length
    }
    const key = KEY.exec(line.slice(column))
    if (!key) {
      if (isHere && cursor >= start + column) place = keyPlace(start + column, column)
      if (/^[{[]/.test(line.slice(column))) beginFlow(start + column, end, childOf(frames.at(-1)), isHere)
      return
    }
    const kept = framesAt(column, 'map')
    const top = kept.at(-1)
    const name = unquoted(key[1] as string)
    const path = top?.column === column ? top.path : childOf(top)
    const afterKey = start + column + key[0].length
    const isKeyTyped = isHere && cursor < afterKey
    if (isKeyTyped) place = cursor < start + column ? undefined : keyPlace(start + column, column)
    else addKey(path, name)
    setFrames([...(top?.column === column ? kept.slice(0, -1) : kept), { column, kind: 'map', path, step: name }])
    const value = text.slice(afterKey, end)
    const valueAt = afterKey + value.length - value.trimStart().length
    if (BLOCK_SCALAR.test(value.trim())) scalarColumn = column
    else if (/^[{[]/.test(value.trimStart())) beginFlow(valueAt, end, [...path, name], isHere && !isKeyTyped)
    else if (isHere && !isKeyTyped && !/^["'&*!]/.test(value.trimStart()))
      place = placeAt({ path: [...path, name], accepts: 'value', from: Math.min(valueAt, cursor) })
  }

  function beginFlow(at: number, end: number, path: Step[], isHere: boolean): void {
    const kind = text[at] as Flow['kind']
    const opened = (): Flow[] => [{ kind, path, step: kind === '[' ? 0 : undefined, tokenAt: at + 1 }]
    if (isHere && cursor > at) {
      flow = opened()
      readFlow(at + 1, cursor)
      place = flowPlace()
    }
    flow = opened()
    readFlow(at + 1, end)
  }

  /** Of a key that begins at this column, where its mapping has begun, or of the node that is missing there. */
  function keyPlace(from: number, column: number): Place | undefined {
    if (/^["']/.test(text.slice(from, cursor))) return undefined
    const top = framesAt(column, 'map').at(-1)
    return top?.column === column
      ? placeAt({ path: top.path, accepts: 'key', from, column })
      : placeAt({ path: childOf(top), accepts: top ? 'node' : 'key', from, column })
  }
}

const isInComment = (before: string): boolean =>
  /(^|\s)#/.test(before.replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/g, ''))

function unquoted(key: string): string {
  if (key.startsWith("'")) return key.slice(1, -1).replaceAll("''", "'")
  if (!key.startsWith('"')) return key
  try {
    return String(JSON.parse(key))
  } catch {
    return key.slice(1, -1)
  }
}
