/** Lists the actions on the pages of the console: the control of each, the call behind it, and the roles that have it. */

export const ROLES = ['owner', 'operator', 'viewer', 'project_admin', 'project_member'] as const
export type Role = (typeof ROLES)[number]

const OWNER: readonly Role[] = ['owner']
const OPERATORS: readonly Role[] = ['owner', 'operator']
const MANAGERS: readonly Role[] = ['owner', 'operator', 'project_admin']
const CALLERS: readonly Role[] = ['owner', 'operator', 'project_admin', 'project_member']
const READERS: readonly Role[] = ['owner', 'operator', 'viewer']
const CONTENTS: readonly Role[] = ['owner', 'project_admin']

export type Act = {
  /** The address of the page; `$name` stands for an object of the test. */
  page: string
  /** The role and the name of the control in the page. */
  control: readonly ['button' | 'link', RegExp]
  /** The calls that it makes. */
  calls: readonly string[]
  /** Who sees the control. */
  roles: readonly Role[]
  /** Who may make the calls, where that is not the same. */
  callers?: readonly Role[]
}

const act = (
  page: string,
  control: Act['control'],
  calls: readonly string[],
  roles: readonly Role[],
  callers?: readonly Role[],
): Act => ({
  page,
  control,
  calls: calls.map((one) => one.replace(' ', ' /admin/v1')),
  roles,
  ...(callers && { callers }),
})

const DRAFTS = ['test', 'diff', 'apply'].map((act) => `POST /provider-drafts/${act}`)
const OVERRIDES = ['PATCH /overrides/{kind}/{name}', 'DELETE /overrides/{kind}/{name}']

// biome-ignore format: a row each
export const ACTS: readonly Act[] = [
  act('/settings', ['button', /^Invite a person/], ['POST /login-links'], MANAGERS),
  act('/settings', ['button', /^New admin token/], ['POST /admin-tokens'], OWNER),
  act('/settings', ['button', /^Revoke/], ['DELETE /admin-tokens/{admin_token_id}'], OWNER),
  act('/settings', ['button', /^End/], ['DELETE /sessions/{session_id}', 'DELETE /sessions'], OWNER),
  act('/tokens', ['button', /^New token/], ['POST /tokens'], MANAGERS),
  act('/tokens/$token', ['button', /^Edit/], ['PATCH /tokens/{token_id}'], MANAGERS),
  act('/tokens/$token', ['button', /^Rotate/], ['POST /tokens/{token_id}/rotate'], MANAGERS),
  act('/tokens/$token', ['button', /^Revoke/], ['DELETE /tokens/{token_id}'], MANAGERS),
  act('/projects', ['button', /^New project/], ['POST /projects'], OPERATORS),
  act('/projects/$project', ['button', /^Edit/], ['PATCH /projects/{project_id}'], MANAGERS),
  act('/projects/$project', ['button', /^Delete/], ['DELETE /projects/{project_id}'], OPERATORS),
  act('/projects/$project', ['link', /^New token/], ['POST /tokens'], MANAGERS),
  act('/budgets', ['button', /^Give credit/], ['POST /budgets/credit'], OPERATORS),
  act('/providers', ['link', /^Add a provider/], DRAFTS, OWNER),
  act('/providers/sandbox', ['button', /^Service of sandbox/], OVERRIDES, OPERATORS),
  act('/providers/sandbox', ['button', /^Forget failures/], ['POST /providers/{provider}/reset'], OPERATORS),
  act('/providers/sandbox', ['button', /^(Make a )?[Tt]est/], ['POST /providers/{provider}/test'], OPERATORS),
  act('/cache', ['button', /^Purge/], ['POST /cache/purge'], OPERATORS),
  act('/alerts', ['button', /^Close budget/], ['POST /alerts/{alert_id}/close'], OPERATORS),
  act('/tasks/$running', ['button', /^Cancel task/], ['POST /tasks/{task_id}/cancel'], OPERATORS),
  act('/tasks/$failed', ['button', /^Resume/], ['POST /tasks/{task_id}/resume'], OPERATORS),
  act('/tasks/$done', ['button', /^Deliver again/], ['POST /tasks/{task_id}/retry-delivery'], OPERATORS),
  act('/tasks/$done', ['button', /^Show outputs/], ['GET /tasks/{task_id}/outputs'], CONTENTS),
  act('/batches/$batch', ['button', /^Cancel batch/], ['POST /batches/{batch_id}/cancel'], OPERATORS),
  act('/files/$file', ['link', /^Download/], ['GET /files/{file_id}/content'], CONTENTS),
  act('/files/$file', ['button', /^Delete/], ['DELETE /files/{file_id}'], MANAGERS),
  act('/webhooks/$webhook', ['button', /^Deliver again/], ['POST /webhooks/{webhook_id}/redeliver'], OPERATORS),
  act('/requests/$request', ['button', /^Show contents/], ['GET /requests/{request_row}/contents'], CONTENTS),
  act('/requests/$request', ['button', /^How would it be routed/], ['POST /routing/explain'], READERS),
  act('/requests/$request', ['link', /^Open in playground/], ['POST /playground/{path}'], CALLERS),
  act('/routing', ['button', /^Explain/], ['POST /routing/explain'], READERS),
  act('/playground', ['button', /^Send/], ['POST /playground/{path}', 'DELETE /playground/{path}'], CALLERS),
  act('/playground?kind=speech', ['button', /^Speak/], ['POST /playground/{path}'], CALLERS),
  act('/playground?kind=transcription', ['button', /^Transcribe/], ['POST /playground/{path}'], CALLERS),
  act('/guards', ['button', /^Try it/], ['POST /guards/test'], OPERATORS),
  act('/mcp', ['button', /^Connect to/], ['POST /mcp/servers/{server}/connect'], OPERATORS),
  act('/mcp', ['button', /^Approve/], ['POST /mcp/tools/approve'], OPERATORS),
  act('/mcp', ['button', /^Disconnect \S+ from/], ['DELETE /mcp/people/{connection_id}'], OPERATORS),
  act('/audit', ['button', /^Check integrity/], ['GET /audit/verify'], READERS),
  act('/config', ['link', /^Edit/], ['text', 'validate', 'diff', 'apply'].map((one) => `POST /config/${one}`), OWNER),
  act('/config', ['link', /^History/], ['GET /config/history/{version_id}'], OWNER),
]

/** Routes that change something and have no control in the console, and why. */
export const WITHOUT_CONTROL: Readonly<Record<string, string>> = {
  'POST /admin/v1/logout': 'in the menu of the bar, for everybody',
  'POST /admin/v1/mcp/connections': 'when the browser comes back from an authorization server: mcp-accounts.test.ts',
  'POST /admin/v1/mcp/connections/{server}': 'for a person of admin.oidc: mcp-accounts.test.ts',
  'DELETE /admin/v1/mcp/connections/{server}': 'for a person who is connected: mcp-accounts.test.ts',
}
