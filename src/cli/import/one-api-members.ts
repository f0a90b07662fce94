/** Says why members of One API and New API have no place here. */
import { byName } from '../../kit/by-name.ts'
import { SILENT } from './imported.ts'

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
