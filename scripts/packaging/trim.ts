/**
 * Takes out of an executable what is not worth its size: the bytecode and the maps of packages that are loaded on demand,
 * and the texts of the sources in all maps. What the runtime appends to itself has the layout of Bun 1.4.5, which is
 * checked. Only for ELF: an executable of macOS is signed.
 */
import assert from 'node:assert/strict'
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { zstdCompressSync } from 'node:zlib'

const PAGE = 4096
const roundUp = (bytes: number, unit: number): number => Math.ceil(bytes / unit) * unit

/** `withMaps`: stacks name the places in the sources. */
export function trimExecutable(file: string, withMaps: boolean): void {
  const elf = readFileSync(file)
  const { number, set } = numbersOf(elf)
  assert.equal(elf.toString('latin1', 0, 4), '\x7fELF')
  const [segments, sections] = [number(0x20), number(0x28)]
  const headers = Array.from({ length: elf.readUInt16LE(0x3c) }, (_, index) => sections + 64 * index)
  const names = number((headers[elf.readUInt16LE(0x3e)] ?? 0) + 0x18)
  const nameAt = (header: number) => elf.toString('latin1', names + elf.readUInt32LE(header)).split('\0', 1)[0]
  const appended = headers.find((header) => nameAt(header) === '.bun') ?? 0
  const [start, size] = [number(appended + 0x18), number(appended + 0x20)]
  const isLast = (header: number) =>
    number(header + 8) < start && number(header + 8) + number(header + 0x20) >= start + size
  const segment = Array.from({ length: elf.readUInt16LE(0x38) }, (_, index) => segments + 56 * index).find(isLast) ?? 0
  // 4 KiB on x64, 64 KiB on arm64.
  const page = number(segment + 0x30)
  const end = roundUp(start + size, page)
  assert.equal(number(segment + 8) + number(segment + 0x20), end, 'the appended section ends the last segment')
  assert(sections >= end)
  const graph = trimGraph(elf.subarray(start + 8, start + 8 + number(start)), withMaps)
  const saved = end - roundUp(start + 8 + graph.length, page)

  for (const length of [segment + 0x20, segment + 0x28]) set(length, number(length) - saved)
  set(appended + 0x20, 8 + graph.length)
  for (const header of headers) if (number(header + 0x18) >= end) set(header + 0x18, number(header + 0x18) - saved)
  set(0x28, sections - saved)
  set(start, graph.length)
  writeSparse(file, [
    [0, elf.subarray(0, start + 8)],
    [start + 8, graph],
    [end - saved, elf.subarray(end)],
  ])
}

function numbersOf(bytes: Buffer) {
  return {
    number: (at: number): number => Number(bytes.readBigUInt64LE(at)),
    set: (at: number, value: number): unknown => bytes.writeBigUInt64LE(BigInt(value), at),
  }
}

/** Zeros take no place: the runtime's unset variables lie between it and what is appended. */
function writeSparse(path: string, parts: [at: number, bytes: Buffer][]): void {
  const zeros = Buffer.alloc(PAGE)
  const file = openSync(path, 'r+')
  try {
    ftruncateSync(file, 0)
    for (const [at, bytes] of parts)
      for (let from = 0; from < bytes.length; from += PAGE) {
        const page = bytes.subarray(from, from + PAGE)
        if (!page.equals(zeros)) writeSync(file, page, 0, page.length, at + from)
      }
  } finally {
    closeSync(file)
  }
}

const TRAILER = '\n---- Bun! ----\n'
/** The length of what precedes, the list of modules, the first of them, arguments, flags. */
const TAIL_BYTES = 32
const MODULE_BYTES = 52
/** Where the entry of a module names its parts, each by offset and length. */
const [NAME, CONTENTS, MAP, BYTECODE, INFO, ORIGIN] = [0, 8, 16, 24, 32, 40] as const
const PARTS = [NAME, CONTENTS, MAP, BYTECODE, INFO, ORIGIN]
/** The runtime reads bytecode where it lies. */
const ALIGNMENT = 128

type Module = { entry: Buffer; name: string; sources: string[]; imports: string[] }

/** The graph of modules: what remains keeps its order, and moves by whole alignments. */
function trimGraph(graph: Buffer, withMaps: boolean): Buffer {
  const tail = Buffer.from(graph.subarray(-TAIL_BYTES - TRAILER.length))
  assert.equal(tail.toString('latin1', TAIL_BYTES), TRAILER)
  assert.equal(Number(tail.readBigUInt64LE(0)), graph.length - tail.length)
  const list = Buffer.from(partOf(graph, tail, 8))
  const modules = modulesOf(graph, list)
  const cold = coldPackages(modules)
  const parts = modules
    .flatMap(({ entry, name }) =>
      PARTS.map((at) => ({ entry, at, isCold: cold.has(name), bytes: partOf(graph, entry, at) })),
    )
    .filter(({ bytes }) => bytes.length > 0)
    .map((part) => ({ ...part, from: part.entry.readUInt32LE(part.at) }))
    .sort((one, other) => one.from - other.from)
  const kept: Buffer[] = []
  let [copied, saved] = [0, 0]
  for (const { entry, at, isCold, bytes, from } of parts) {
    entry.writeUInt32LE(from - saved, at)
    if (at !== MAP && !(at === BYTECODE && isCold)) continue
    const short = isCold || !withMaps ? Buffer.alloc(0) : withoutTexts(bytes)
    const dropped = Math.floor((bytes.length - short.length) / ALIGNMENT) * ALIGNMENT
    kept.push(graph.subarray(copied, from), short, Buffer.alloc(bytes.length - dropped - short.length))
    copied = from + bytes.length
    saved += dropped
    // Only an empty part that lies nowhere is none.
    if (short.length === 0) entry.writeUInt32LE(0, at)
    entry.writeUInt32LE(short.length, at + 4)
  }
  const at = tail.readUInt32LE(8)
  assert(copied <= at, 'the list of modules follows their parts')
  const rest = graph.subarray(at + list.length, -tail.length)
  for (const field of [8, 20]) tail.writeUInt32LE(tail.readUInt32LE(field) - saved, field)
  tail.writeBigUInt64LE(BigInt(graph.length - tail.length - saved), 0)
  return Buffer.concat([...kept, graph.subarray(copied, at), list, rest, tail])
}

function partOf(graph: Buffer, owner: Buffer, at: number): Buffer {
  const from = owner.readUInt32LE(at)
  return graph.subarray(from, from + owner.readUInt32LE(at + 4))
}

function modulesOf(graph: Buffer, list: Buffer): Module[] {
  assert.equal(list.length % MODULE_BYTES, 0)
  return Array.from({ length: list.length / MODULE_BYTES }, (_, index) => {
    const entry = list.subarray(index * MODULE_BYTES, (index + 1) * MODULE_BYTES)
    const [name = '', script = ''] = [NAME, CONTENTS].map((at) => partOf(graph, entry, at).toString('latin1'))
    const map = partOf(graph, entry, MAP)
    return {
      entry,
      name: baseName(name),
      sources: map.length > 0 ? sourcesOf(map).map(String) : [],
      imports: partOf(graph, entry, BYTECODE).length > 0 ? staticImports(script) : [],
    }
  })
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const staticImports = (script: string): string[] =>
  [...script.matchAll(/(?:from|import)"([^"]+)"/g)].map(([, path = '']) => baseName(path))

/** Those of packages only, but for what a module of the gateway imports at once. */
function coldPackages(modules: Module[]): Set<string> {
  const cold = new Map(
    modules
      .filter(({ sources }) => sources.length > 0 && sources.every((source) => source.includes('node_modules/')))
      .map((module) => [module.name, module]),
  )
  const heat = (module: Module): void => {
    for (const name of module.imports) {
      const imported = cold.get(name)
      if (!imported) continue
      cold.delete(name)
      heat(imported)
    }
  }
  for (const module of modules) if (!cold.has(module.name)) heat(module)
  return new Set(cold.keys())
}

/** A map: how many sources, the length of the mappings; the name of each source, its text; the mappings; names and texts. */
function sourcesOf(map: Buffer): Buffer[] {
  return Array.from({ length: map.readUInt32LE(0) }, (_, index) => {
    const from = map.readUInt32LE(8 + 8 * index)
    return map.subarray(from, from + map.readUInt32LE(12 + 8 * index))
  })
}

const NO_TEXT = zstdCompressSync(Buffer.alloc(0))

function withoutTexts(map: Buffer): Buffer {
  if (map.length === 0) return map
  const names = sourcesOf(map)
  const head = Buffer.from(map.subarray(0, 8 + 16 * names.length + map.readUInt32LE(4)))
  let end = head.length + NO_TEXT.length
  names.forEach((name, index) => {
    head.writeUInt32LE(end, 8 + 8 * index)
    head.writeUInt32LE(head.length, 8 + 8 * (names.length + index))
    head.writeUInt32LE(NO_TEXT.length, 12 + 8 * (names.length + index))
    end += name.length
  })
  return Buffer.concat([head, NO_TEXT, ...names])
}
