/** Shows the difference of the last answers of two models. */
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Diff } from '../../ui/diff.tsx'
import { Select } from '../../ui/select.tsx'

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
  const [before, after] = [answers[Number(from)]?.text ?? '', answers[Number(to)]?.text ?? '']
  return (
    <Dialog open onClose={onClose} title="Difference of two answers" size="large">
      <div className="row">
        <Select isCompact label="From" value={from} options={options} onChange={(value) => choose([value, to])} />
        <Select isCompact label="To" value={to} options={options} onChange={(value) => choose([from, value])} />
      </div>
      {before === after && <p className="soft">The answers are the same.</p>}
      <Diff before={before} after={after} label="Difference" />
      <DialogActs>
        <Button onClick={onClose}>Close</Button>
      </DialogActs>
    </Dialog>
  )
}
