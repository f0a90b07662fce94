/** All budgets, and credit for those that never start again. */
import { useState } from 'react'
import { useAct, useApiList, useMe } from '../../api/hooks.ts'
import { flag } from '../../lib/search.ts'
import { hasRight, seesAll } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { errorOf, FormError, TextField } from '../../ui/field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Combobox } from '../../ui/select.tsx'
import { BudgetList } from './budget-list.tsx'
import { useProjects } from './projects-data.ts'

export function BudgetsPage() {
  const me = useMe()
  const [{ credit }, change] = useAddress({ credit: flag() })
  const mayCredit = hasRight(me, 'manage') && seesAll(me)
  return (
    <>
      <PageHead
        title="Budgets"
        note="What may be spent in a day, week, month or in all, and what is used of it."
        acts={
          mayCredit && (
            <Button icon="plus" onClick={() => change({ credit: true })}>
              Give credit
            </Button>
          )
        }
      />
      <BudgetList />
      {credit && mayCredit && <GiveCredit onClose={() => change({ credit: false })} />}
    </>
  )
}

function GiveCredit({ onClose }: { onClose(): void }) {
  const { projects } = useProjects()
  const { rows: tokens } = useApiList(
    'GET /admin/v1/tokens',
    { query: { active: 'true', order: 'newest' } },
    { limit: 200 },
  )
  const [owner, setOwner] = useState('')
  const [amount, setAmount] = useState('')
  const [note, setNote] = useState('')
  const give = useAct('POST /admin/v1/budgets/credit', {
    changes: ['GET /admin/v1/budgets', 'GET /admin/v1/tokens'],
    done: ({ warnings: [warning] }) => (warning === undefined ? 'Credit given' : `Credit given. ${warning}`),
    onDone: onClose,
    showsError: true,
  })
  const options = [
    ...projects.map(({ project_id, name }) => ({ value: project_id, label: name, note: 'project' })),
    ...tokens.map(({ token_id, name }) => ({ value: token_id, label: name, note: 'token' })),
  ]
  const isProject = projects.some(({ project_id }) => project_id === owner)
  return (
    <Dialog
      open
      onClose={onClose}
      title="Give credit"
      text="Adds to what a project or token may use in its budget in total. A negative amount takes credit back."
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          const of = isProject ? { project_id: owner } : { token_id: owner }
          give.mutate({ body: { ...of, amount: Number(amount), ...(note && { note }) } })
        }}
      >
        <Combobox
          label="Project or token"
          value={owner}
          options={options}
          onChange={setOwner}
          placeholder="Find by name"
        />
        <TextField
          label="Amount"
          inputMode="decimal"
          required
          pattern="-?[0-9]+(\.[0-9]+)?"
          title="An amount such as 25 or -0.5"
          value={amount}
          onChange={setAmount}
          error={errorOf(give.error, 'amount')}
        />
        <TextField
          label="Note"
          help="Such as the number of an invoice."
          maxLength={200}
          value={note}
          onChange={setNote}
        />
        <FormError error={give.error} fields={['amount']} />
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={give.isPending} disabled={owner === ''}>
            Give credit
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
