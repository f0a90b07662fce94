/** Reads the options of One API and of New API: how much quota a dollar is, the groups of auto, and what is not carried of options and rows. */
import { byName } from '../../kit/by-name.ts'
import { type Draft, membersOf, SILENT } from './imported.ts'
import type { Row } from './sql-dump.ts'

/** Quota of a dollar where the option QuotaPerUnit is not set, in both. */
const USUAL_QUOTA = 500_000
const PRICES = 'prices are those of models, in money: models.<id>.prices, or gatehouse models import'
const GROUPS = 'a group has no price of its own: write the prices of the models'
const OPTIONS = byName(
  [PRICES, 'ModelRatio ModelPrice CompletionRatio CacheRatio CreateCacheRatio ImageRatio AudioRatio'],
  [PRICES, 'AudioCompletionRatio'],
  [GROUPS, 'GroupRatio GroupGroupRatio'],
  ['set models.<id>.routing.tries', 'RetryTimes'],
  ['set rate_limits of projects and tokens', 'ModelRequestRateLimitCount ModelRequestRateLimitGroup'],
)

type Options = {
  /** How much quota a dollar is. */
  perDollar: number
  /** The groups that New API tries for a token of the group auto, by the group of its user. */
  autoGroups(own: string): string[]
}

/** Only changed options have a row; the others have the values of New API. Without rows, or where that of AutoGroups is null, auto is the group of the user. */
export function readOptions(draft: Draft, rows: readonly Row[] | undefined): Options {
  let perDollar = USUAL_QUOTA
  let auto: string[] | undefined = rows && ['default']
  let usable = ['default', 'vip']
  const others: string[] = []
  for (const row of rows ?? []) {
    const name = String(row.key).slice(0, 80)
    const path = `options[${name}]`
    if (name === 'QuotaPerUnit') {
      const value = membersOf(draft, row, path).number('value')
      if (value !== undefined && value > 0) perDollar = value
      // With another one every amount would be wrong.
      else throw new Error(`${path}: it must be a number above 0`)
      draft.mapped(path, `${perDollar} of quota are a dollar`)
    } else if (name === 'AutoGroups') auto = row.value === null ? undefined : membersOf(draft, row, path).list('value')
    else if (name === 'UserUsableGroups') usable = Object.keys(membersOf(draft, row, path).record('value') ?? {})
    else if (Object.hasOwn(OPTIONS, name)) {
      if (row.value !== null && row.value !== '' && row.value !== '{}') draft.dropped(path, OPTIONS[name] ?? '')
    } else others.push(name)
  }
  if (others.length > 0)
    draft.dropped(`options: ${others.join(', ').slice(0, 2_000)}`, 'settings of its server and of its console')
  return {
    perDollar,
    autoGroups: (own) => auto?.filter((group) => group === own || usable.includes(group)) ?? [own],
  }
}

/** Why members of rows have no place here. */
const TIMES = 'created_time accessed_time test_time created_at updated_at'
export const CHANNEL = byName(
  [SILENT, TIMES],
  [SILENT, 'id name response_time balance balance_updated_time used_quota channel_info test_model other_info remark'],
  [SILENT, 'tag'],
  ['a target that fails is left out by its error rate', 'auto_ban'],
  ['errors have one form here', 'status_code_mapping'],
  ['options of a provider: providers.<id>.options', 'other config setting settings'],
  ['set providers.<id>.request_defaults', 'param_override'],
  ['set providers.<id>.headers', 'header_override openai_organization'],
  ['a gateway adds no prompt', 'system_prompt'],
)
export const USER = byName(
  [SILENT, TIMES],
  [SILENT, 'display_name request_count aff_code aff_count aff_quota aff_history inviter_id'],
  ['people log in to the console by roles', 'password role email'],
  ['make an admin token: gatehouse admin create', 'access_token'],
  ['settings of a person are not carried', 'setting'],
)
export const TOKEN = byName(
  [SILENT, `${TIMES} group billing_type`],
  ['routing is that of models, for all tokens', 'cross_group_retry'],
)
