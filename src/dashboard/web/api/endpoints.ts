/**
 * Every endpoint of the API with the type of its reply. The types are the server's schemas. The page does not
 * validate replies, since the server has the same version and its tests validate them.
 */
import type * as schema from '../../../control/dashboard/schema/schema.js'
import { accountNow, cache, call, urlOf, type Query } from './client.js'

/** Endpoints that read, with their replies. */
export interface Reads {
  '/session': schema.SessionReply
  '/account': schema.ShownAccountReply
  '/plans': schema.PlansReply
  '/keys': schema.KeysReply
  '/keys/{id}': schema.KeyDetailReply
  '/keys/{id}/clients': schema.KeyClientsReply
  '/limits': schema.LimitsReply
  '/usage': schema.UsageReply
  '/usage/groups': schema.UsageGroupsReply
  '/statements/{id}': schema.StatementReply
  '/requests': schema.RequestsReply
  '/requests/{id}': schema.RequestReply
  '/live': schema.LiveReply
  '/run': schema.RunReply
  '/batches': schema.BatchesReply
  '/batches/{id}': schema.BatchReply
  '/own-usage': schema.OwnUsageReply
  '/models': schema.ModelsReply
  '/models/deprecated': schema.DeprecatedReply
  '/models/explain': schema.ExplainReply
  '/operations': schema.OperationsReply
  '/incidents': schema.IncidentsReply
  '/failures': schema.FailuresReply
  '/providers': schema.ProvidersReply
  '/configuration': schema.ConfigurationReply
  '/configuration/{id}': schema.GenerationReply
  '/accounts': schema.AccountsReply
  '/accounts/{id}': schema.AccountPageReply
  '/account-tree': schema.AccountTreeReply
  '/audit': schema.AuditReply
  '/budgets': schema.BudgetsReply
  '/checklist': schema.ChecklistReply
  '/members': schema.MembersReply
  '/users': schema.UsersReply
  '/search': schema.SearchReply
  '/views': schema.ViewsReply
  '/recordings/{id}': schema.RecordingReply
  '/device/{id}': schema.DeviceReply
}

/** Endpoints that change state, with their bodies and replies. */
interface Changes {
  'POST /session': [schema.SignInBody, schema.SessionReply]
  'DELETE /session': [undefined, schema.DoneReply]
  'DELETE /sessions': [undefined, schema.DoneReply]
  'PUT /password': [schema.PasswordBody, schema.SessionReply]
  'POST /setup': [schema.SetUpBody, schema.SessionReply]
  'POST /reset': [schema.ResetBody, schema.ResetReply]
  'POST /lost-password': [schema.LostPasswordBody, schema.DoneReply]
  'POST /sign-up': [schema.SignUpBody, schema.DoneReply]
  'POST /oidc/start': [Record<string, never>, schema.OidcStartReply]
  'POST /oidc/finish': [schema.OidcFinishBody, schema.SessionReply]
  'POST /device/{id}': [schema.DeviceBody, schema.DoneReply]
  'POST /keys': [schema.CreateKeyBody, schema.CreatedKeyReply]
  'POST /keys/lookup': [{ digest: string }, schema.LookUpKeyReply]
  'PATCH /keys/{id}': [schema.ChangeKeyBody, schema.KeyReply]
  'POST /keys/{id}/rotate': [schema.RotateKeyBody, schema.RotatedKeyReply]
  'DELETE /keys/{id}': [undefined, schema.KeyReply]
  'PUT /views/{id}': [schema.ViewBody, schema.ViewsReply]
  'DELETE /views/{id}': [undefined, schema.ViewsReply]
  'PUT /members/{id}': [schema.MemberBody, schema.MemberReply]
  'DELETE /members/{id}': [undefined, schema.DoneReply]
  'POST /users': [schema.InviteUserBody, schema.InvitedUserReply]
  'PATCH /users/{id}': [schema.ChangeUserBody, schema.UserReply]
  'POST /users/{id}/invite': [Record<string, never>, schema.UserLinkReply]
  'POST /users/{id}/unbind': [Record<string, never>, schema.UserReply]
  'POST /members/{id}/invite': [Record<string, never>, schema.InviteReply]
  'POST /batches/{id}/cancel': [schema.CancelBatchBody, schema.BatchReply]
  'DELETE /recordings/{id}': [undefined, schema.RecordingDeletedReply]
  'POST /configuration/{id}/rollback': [schema.RollbackBody, schema.RollbackReply]
  'POST /accounts': [schema.CreateAccountBody, schema.CreatedAccountReply]
  'PATCH /accounts/{id}': [schema.ChangeAccountBody, schema.AccountReply]
  'PUT /accounts/{id}/limits': [schema.AccountLimitsBody, schema.AccountLimitsReply]
  'POST /accounts/{id}/limits/raise': [schema.RaiseBody, schema.AccountLimitsReply]
  'POST /keys/{id}/raise': [schema.RaiseBody, schema.KeyReply]
  'POST /run/end': [schema.EndRunBody, schema.RunReply]
  'POST /accounts/{id}/reset': [Record<string, never>, schema.ResetLinkReply]
}

interface ReadOptions {
  readonly signal?: AbortSignal
  /** The page sends it without user activity. */
  readonly passive?: boolean
}

/** Sends a GET request. */
export async function read<P extends keyof Reads>(
  path: P,
  query: Query = {},
  options: ReadOptions = {},
): Promise<Reads[P]> {
  const response = await call('GET', urlOf(path, query), options)
  return (await response.json()) as Reads[P]
}

/**
 * Sends a request that changes state, and loads again what is shown; `id` replaces the `{id}` of its path.
 * `query` has the account of a key that is not in the account that the page shows.
 */
export async function change<C extends keyof Changes>(
  what: C,
  body: Changes[C][0],
  id?: string,
  query: Query = {},
): Promise<Changes[C][1]> {
  const [method = '', path = ''] = what.split(' ')
  const response = await call(method, urlOf(path, { id, account: accountFor(path), ...query }), {
    body,
  })
  const reply = (await response.json()) as Changes[C][1]
  void cache.invalidateQueries()
  return reply
}

/**
 * Changes of keys and members are about the account that the page shows. Of all accounts, the server finds
 * that of a key; a new key and members are those of the user's own account.
 */
function accountFor(path: string): string | null {
  // A digest is looked up in all accounts.
  if (path === '/keys/lookup') return null
  const account = accountNow()
  if (path.startsWith('/keys/')) return account
  if (!path.startsWith('/keys') && !path.startsWith('/members')) return null
  return account === 'all' ? null : account
}
