/** The difference of two texts, word by word. */
import { diffOf } from '../lib/word-diff.ts'

type DiffProps = { before: string; after: string; label: string }

export function Diff({ before, after, label }: DiffProps) {
  const { parts, is_cut } = diffOf(before, after)
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <section className="diff" aria-label={label} tabIndex={0}>
        {parts.map(({ kind, text }, index) => {
          const key = `${index}`
          if (kind === 'same') return <span key={key}>{text}</span>
          return kind === 'added' ? <ins key={key}>{text}</ins> : <del key={key}>{text}</del>
        })}
      </section>
      {is_cut && <p className="small faint">Only the beginning is compared.</p>}
    </>
  )
}
