/** Shows the difference of the last answers of two models. */
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Select } from '../../ui/select.tsx'
import { diffOf } from './word-diff.ts'

type AnswerOfModel = { label: string; text: string }

export function CompareButton({ answers }: { answers: AnswerOfModel[] }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button size="small" disabled={answers.length < 2} onClick={() => setOpen(true)}>
        Compare
      </Button>
      {isOpen && <CompareDialog answers={answers} onClose={() => setOpen(false)} />}
    </>
  )
}

function CompareDialog({ answers, onClose }: { answers: AnswerOfModel[]; onClose(): void }) {
  const [[from, to], choose] = useState<[string, string]>(['0', '1'])
  const options = answers.map(({ label }, index) => ({ value: `${index}`, label }))
  const { parts, is_cut } = diffOf(answers[Number(from)]?.text ?? '', answers[Number(to)]?.text ?? '')
  const isSame = parts.every(({ kind }) => kind === 'same')
  return (
    <Dialog open onClose={onClose} title="Difference of two answers" size="large">
      <div className="row">
        <Select isCompact label="From" value={from} options={options} onChange={(value) => choose([value, to])} />
        <Select isCompact label="To" value={to} options={options} onChange={(value) => choose([from, value])} />
      </div>
      {isSame && <p className="soft">The answers are the same.</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <section className="chat-diff" aria-label="Difference" tabIndex={0}>
        {parts.map(({ kind, text }, index) => {
          const key = `${index}`
          if (kind === 'same') return <span key={key}>{text}</span>
          return kind === 'added' ? <ins key={key}>{text}</ins> : <del key={key}>{text}</del>
        })}
      </section>
      {is_cut && <p className="small faint">Only the beginning is compared.</p>}
      <DialogActs>
        <Button onClick={onClose}>Close</Button>
      </DialogActs>
    </Dialog>
  )
}
