/** Parses YAML with a limit on depth and number of nodes, which holds before a tree of the text is made. */
import { Composer, type Document, Lexer, type LineCounter, Parser, YAMLParseError } from 'yaml'

/** Collections inside each other. An alias inside its own anchor would recurse without end. */
export const MAXIMUM_DEPTH = 100
/** Values, aliases expanded: far above any real file. A few lines of nested aliases would expand to gigabytes. */
export const MAXIMUM_NODES = 100_000
/** A value has at most a key and a "-" beside it. */
const NODES_OF_VALUE = 3
/** The document and the scalar at the end are on the parser's stack too. */
const MAXIMUM_STACK = MAXIMUM_DEPTH + 2

type Bounded = { document: Document.Parsed } | { /** Where the limit is exceeded. */ offset: number }

/** Each begins a node; the first is the lexer's mark before a scalar. */
const NODE_LEXEMES: ReadonlySet<string> = new Set(['\u001f', '[', '{', '-', '?'])

/** The library's `parseDocument`, but for its search of equal keys, whose time is quadratic. */
export function parseBounded(text: string, lines: LineCounter): Bounded {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  let nodes = 0
  let isExceeded = false

  function* tokens() {
    for (const lexeme of new Lexer().lex(text)) {
      if (NODE_LEXEMES.has(lexeme)) nodes++
      yield* parser.next(lexeme)
      isExceeded = nodes > MAXIMUM_NODES * NODES_OF_VALUE || parser.stack.length > MAXIMUM_STACK
      if (isExceeded) return // the unfinished document is composed of nothing
    }
    yield* parser.end()
  }

  const composer = new Composer({ prettyErrors: false, uniqueKeys: false })
  let document: Document.Parsed | undefined
  for (const composed of composer.compose(tokens(), true, text.length)) {
    if (!document) document = composed as Document.Parsed
    else {
      document.errors.push(new YAMLParseError([composed.range[0], composed.range[1]], 'MULTIPLE_DOCS', ''))
      break
    }
  }
  return isExceeded || !document ? { offset: parser.offset } : { document }
}
