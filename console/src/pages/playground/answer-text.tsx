/** Shows what a model wrote: a small part of Markdown as elements. Links and pictures stay text, so nothing is loaded. */
import type { ReactNode } from 'react'
import { Code } from '../../ui/display.tsx'

/** Longer text is shown as it is: the elements of it would slow the page down. */
const MAX_FORMATTED = 100_000

type Block =
  | { kind: 'code'; text: string; language: string }
  | { kind: 'heading'; text: string }
  | { kind: 'paragraph'; text: string }
  | { kind: 'list'; items: string[]; isOrdered: boolean }

export function AnswerText({ text }: { text: string }) {
  if (text.length > MAX_FORMATTED) return <p className="message-text">{text}</p>
  return (
    <div className="answer-text">
      {blocksOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no id, and text only grows at its end
        <BlockView key={index} block={block} />
      ))}
    </div>
  )
}

function BlockView({ block }: { block: Block }) {
  if (block.kind === 'code') return <Code label={block.language || 'code'} text={block.text} />
  if (block.kind === 'heading') return <p className="answer-heading">{inline(block.text)}</p>
  if (block.kind === 'paragraph') return <p className="message-text">{inline(block.text)}</p>
  const List = block.isOrdered ? 'ol' : 'ul'
  return (
    <List className="answer-list" data-ordered={block.isOrdered || undefined}>
      {block.items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        <li key={index}>{inline(item)}</li>
      ))}
    </List>
  )
}

const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/
const HEADING = /^\s{0,3}#{1,6}\s+(.*)$/
const ITEM = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/

/** Reads each line once. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const fence = FENCE.exec(line)
    if (fence) {
      const code: string[] = []
      for (at++; at < lines.length && !lines[at]?.trim().startsWith(fence[1] ?? '```'); at++) code.push(lines[at] ?? '')
      blocks.push({ kind: 'code', text: code.join('\n'), language: fence[2] ?? '' })
      continue
    }
    const heading = HEADING.exec(line)
    const item = ITEM.exec(line)
    const last = blocks.at(-1)
    if (heading) blocks.push({ kind: 'heading', text: heading[1] ?? '' })
    else if (item) {
      const isOrdered = item[1] !== undefined
      if (last?.kind === 'list' && last.isOrdered === isOrdered) last.items.push(item[2] ?? '')
      else blocks.push({ kind: 'list', items: [item[2] ?? ''], isOrdered })
    } else if (line.trim() === '') blocks.push({ kind: 'paragraph', text: '' })
    else if (last?.kind === 'paragraph' && last.text !== '') last.text += `\n${line}`
    else blocks.push({ kind: 'paragraph', text: line })
  }
  return blocks.filter((block) => block.kind !== 'paragraph' || block.text !== '')
}

const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/

const inline = (text: string): ReactNode[] =>
  text.split(INLINE).map((part, index) => {
    const key = `${index}`
    if (part.length > 2 && part.startsWith('`') && part.endsWith('`')) return <code key={key}>{part.slice(1, -1)}</code>
    if (part.length > 4 && part.startsWith('**') && part.endsWith('**')) return <b key={key}>{part.slice(2, -2)}</b>
    return part
  })
