/** Looks up an order in doubt in the list of its provider: before it is sent again, and before the task is given up. */
import { canonicalJson } from '../../../kit/json.ts'
import { type ExpectedFields, type ListedOrder, type OrderList, shows } from '../../../providers/orders/order-list.ts'
import type { OrderCall } from '../../../providers/provider.ts'
import type { SentTask } from '../../../store/store.ts'
import { isEnded } from '../lifecycle.ts'
import type { TaskProvider } from '../order-kinds.ts'
import { asGatewayError, type ClaimedTask, withSignal } from './claimed-task.ts'
import type { AcceptedOrder } from './immediate-outputs.ts'
import { mayBeElsewhere, orderTimeoutSeconds, wasSentThere } from './order.ts'

/** How far the clocks of the gateway and of a provider may differ. */
const CLOCK_SKEW_SECONDS = 60
/** How long an accepted order may be missing from a list, unless the provider's row says otherwise. */
const LISTED_SECONDS = 300
/** How far the times of a provider and of the gateway are allowed to differ where that must not cost a second order. */
const DAY_SECONDS = 86_400

/**
 * `open`: it may still appear, or the list could not be read; `gone`: it was not found and is no longer expected;
 * `not accepted`: the same, and the list is complete.
 */
type LookUpResult = AcceptedOrder | 'open' | 'gone' | 'not accepted'

export async function lookUpOrder(
  claimed: ClaimedTask,
  provider: TaskProvider,
  call: OrderCall<object>,
): Promise<LookUpResult> {
  const { task, clock, log } = claimed
  const { orderList } = provider
  if (!orderList) return 'gone'
  const { task_id } = task
  try {
    const listed = await withSignal(
      claimed.signal,
      orderList.since(call, (task.sent_at ?? 0) - CLOCK_SKEW_SECONDS, claimed.signal),
    )
    if (!listed) return 'gone'
    const latest = windowOf(claimed, task).until + (orderList.listed_seconds ?? LISTED_SECONDS) - CLOCK_SKEW_SECONDS
    const is_settled = clock.now() / 1000 >= latest
    const result = await recognise(claimed, orderList, { call, listed, is_settled })
    if (typeof result === 'object') log.info('order in doubt found', { task_id, provider: task.provider })
    if (result === 'not accepted') log.warn('order in doubt was not accepted', { task_id, provider: task.provider })
    return result
  } catch (error) {
    if (claimed.stopping()) throw error
    const { code } = asGatewayError(error)
    log.warn('lookup of an order in doubt failed', { task_id, provider: task.provider, code })
    return 'open'
  }
}

type Seen = { call: OrderCall<object>; listed: ListedOrder[]; is_settled: boolean }

async function recognise(
  claimed: ClaimedTask,
  list: OrderList<OrderCall<object>>,
  { call, listed, is_settled }: Seen,
): Promise<LookUpResult> {
  const { task } = claimed
  const own = listed.find(({ label }) => label === task.task_id)
  if (own) return { operation: own.operation }
  // Another account, or the same one with other settings: its list says nothing about this order.
  if (!wasSentThere(claimed)) return is_settled ? 'gone' : 'open'
  const fields = await list.fieldsOf?.(call)
  const unlabelled = fields ? listed.filter(({ label }) => label === undefined) : []
  const window = windowOf(claimed, task)
  // Those whose orders may be in the same part of the list. Read after it: an order that one has stored since is seen as its own.
  const others = await otherSentTasks(claimed, window.from - (window.until - window.from))
  const free = unlabelled.filter((one) => !others.some((other) => owns(other, one)))
  const mine = free.filter((one) => fields && shows(one, fields) === true).sort(byTime)
  const [first, second] = mine.filter((one) => within(window, one))
  const rivals = others.filter((other) => isRival(other, claimed))
  if (first && !second && rivals.length === 0) return { operation: first.operation }
  if (!is_settled) return 'open'
  const found = await assigned(claimed, { mine, rivals })
  if (found === 'ambiguous') return 'gone'
  if (found) return { operation: found.operation }
  if (list.absent !== 'not accepted' || (list.fieldsOf && !fields)) return 'gone'
  const ofRivals = mine.filter((one) => rivals.some((rival) => within(windowOf(claimed, rival), one)))
  const rest = free.filter((one) => !ofRivals.includes(one) && fields && mayBeOurs(one, { fields, window }))
  if (await mayBeElsewhere(claimed)) return 'gone'
  return (await isOfOtherTasks(claimed, rest)) ? 'not accepted' : 'gone'
}

/**
 * Before an order is sent again, other times and other parameters count as well: the clocks may differ by more than a
 * minute, and a provider may round a duration. The prompt alone tells them apart; without one, the time.
 */
function mayBeOurs(
  one: ListedOrder,
  { fields, window }: { fields: ExpectedFields; window: ReturnType<typeof windowOf> },
): boolean {
  const isEqual = shows(one, { always: fields.always })
  return isEqual ?? (Number.isNaN(one.created_at) || within(window, one))
}

/** Whether each of these, of any time, is the order of another task, or of one that is being sent at that time. */
async function isOfOtherTasks(claimed: ClaimedTask, listed: ListedOrder[]): Promise<boolean> {
  if (listed.length === 0) return true
  const { task } = claimed
  const since = Math.min(...listed.map(({ created_at }) => created_at)) - DAY_SECONDS
  if (Number.isNaN(since)) return false
  const others = await otherSentTasks(claimed, since)
  const mayOwn = (other: SentTask, one: ListedOrder) =>
    other.provider_key === task.provider_key &&
    isLikeOurs(other, claimed) &&
    within(windowOf(claimed, other), one) &&
    !within(windowOf(claimed, task), one)
  return listed.every((one) => others.some((other) => owns(other, one) || mayOwn(other, one)))
}

/** When an order of this task was accepted, if it was, by the provider's clock. Unix seconds. */
function windowOf(claimed: ClaimedTask, { sent_at }: Pick<SentTask, 'sent_at'>): { from: number; until: number } {
  const from = (sent_at ?? 0) - CLOCK_SKEW_SECONDS
  return { from, until: from + orderTimeoutSeconds(claimed) + 2 * CLOCK_SKEW_SECONDS }
}

const within = ({ from, until }: { from: number; until: number }, { created_at }: ListedOrder): boolean =>
  created_at >= from && created_at <= until

const byTime = (a: ListedOrder, b: ListedOrder): number => a.created_at - b.created_at || (a.id < b.id ? -1 : 1)

async function otherSentTasks({ task, store }: ClaimedTask, since: number): Promise<SentTask[]> {
  const sent = await store.tasks.sentSince({ provider: task.provider, since })
  return sent.filter(({ task_id }) => task_id !== task.task_id)
}

/** An id that stands anywhere in an operation, as a whole word, is the id of that order. */
function owns({ operation }: SentTask, { id }: ListedOrder): boolean {
  if (operation === null) return false
  const text = JSON.stringify(operation)
  const searched = JSON.stringify(id).slice(1, -1)
  for (let at = text.indexOf(searched); at !== -1; at = text.indexOf(searched, at + 1)) {
    if (!WORD.test(text.charAt(at - 1)) && !WORD.test(text.charAt(at + searched.length))) return true
  }
  return false
}
const WORD = /[\w-]/

/** With these a task may end although its order was accepted. */
const IN_DOUBT: readonly SentTask['fail_code'][] = ['', 'submit_outcome_unknown', 'canceled', 'timeout']

/** Whether a listed order that looks like ours may be that of another task, which does not know its order either. */
const isRival = (other: SentTask, claimed: ClaimedTask): boolean =>
  isLikeOurs(other, claimed) && windowOf(claimed, other).from <= windowOf(claimed, claimed.task).until

const isLikeOurs = ({ operation, fail_code, request }: SentTask, { task }: ClaimedTask): boolean =>
  operation === null && IN_DOUBT.includes(fail_code) && request.prompt === task.request.prompt

/**
 * Several tasks may wait for several orders that look alike. Where their requests are equal, it does not matter which
 * task gets which order: they are assigned in the order of time, and every process comes to the same result.
 */
async function assigned(
  claimed: ClaimedTask,
  { mine, rivals }: { mine: ListedOrder[]; rivals: SentTask[] },
): Promise<ListedOrder | 'ambiguous' | undefined> {
  const { task, store } = claimed
  if (mine.length === 0) return undefined
  // Whether two keys are of one account is not known: neither of the orders is that of this task for certain.
  if (rivals.some(({ provider_key }) => provider_key !== task.provider_key)) return 'ambiguous'
  const requestOf = async ({ task_id, request }: SentTask) =>
    canonicalJson({ ...request, ...(await store.tasks.inputs(task_id)) })
  const request = await requestOf(task)
  for (const rival of rivals) {
    // The media of an ended task are deleted, so its request cannot be compared any more.
    if (isEnded(rival) || (await requestOf(rival)) !== request) return 'ambiguous'
  }
  const claimants: SentTask[] = [...rivals, task].sort(
    (a, b) => (a.sent_at ?? 0) - (b.sent_at ?? 0) || (a.task_id < b.task_id ? -1 : 1),
  )
  const free = mine.filter((one) => claimants.some((claimant) => within(windowOf(claimed, claimant), one)))
  if (free.length > claimants.length) return 'ambiguous'
  for (const claimant of claimants) {
    const window = windowOf(claimed, claimant)
    const at = free.findIndex((one) => within(window, one))
    const [one] = at === -1 ? [] : free.splice(at, 1)
    if (claimant === task) return one
  }
  return undefined
}
