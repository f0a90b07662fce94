/** Says why members of One API and New API have no place here. */

const NOTHING = ''
const TIMES = {
  created_time: NOTHING,
  accessed_time: NOTHING,
  test_time: NOTHING,
  created_at: NOTHING,
  updated_at: NOTHING,
}
export const CHANNEL: Record<string, string> = {
  ...TIMES,
  id: NOTHING,
  name: NOTHING,
  response_time: NOTHING,
  balance: NOTHING,
  balance_updated_time: NOTHING,
  used_quota: NOTHING,
  channel_info: NOTHING,
  test_model: NOTHING,
  other_info: NOTHING,
  remark: NOTHING,
  tag: NOTHING,
  auto_ban: 'a target that fails is left out by its error rate',
  status_code_mapping: 'errors have one form here',
  other: 'options of a provider: providers.<id>.options',
  config: 'options of a provider: providers.<id>.options',
  setting: 'options of a provider: providers.<id>.options',
  settings: 'options of a provider: providers.<id>.options',
  param_override: 'set providers.<id>.request_defaults',
  header_override: 'set providers.<id>.headers',
  openai_organization: 'set providers.<id>.headers',
  system_prompt: 'a gateway adds no prompt',
}
export const USER: Record<string, string> = {
  ...TIMES,
  display_name: NOTHING,
  request_count: NOTHING,
  aff_code: NOTHING,
  aff_count: NOTHING,
  aff_quota: NOTHING,
  aff_history: NOTHING,
  inviter_id: NOTHING,
  password: 'people log in to the console by roles',
  access_token: 'make an admin token: gatehouse admin create',
  role: 'people log in to the console by roles',
  email: 'people log in to the console by roles',
  setting: 'settings of a person are not carried',
}
export const TOKEN: Record<string, string> = {
  ...TIMES,
  group: NOTHING,
  billing_type: NOTHING,
  cross_group_retry: 'routing is that of models, for all tokens',
}
