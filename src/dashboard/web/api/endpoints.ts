/**
 * Every endpoint of the API with the type of its reply. The types are the server's schemas. The page does not
 * validate replies, since the server has the same version and its tests validate them.
 */
import type {
  AccountReply,
  AccountsReply,
  AuditReply,
  ChangeAccountBody,
  ChangeKeyBody,
  ConfigurationReply,
  CreateAccountBody,
  CreatedAccountReply,
  CreatedKeyReply,
  CreateKeyBody,
  DeprecatedReply,
  DoneReply,
  ExplainReply,
  GenerationReply,
  KeyReply,
  KeysReply,
  LimitsReply,
  InviteReply,
  KeyDetailReply,
  LiveReply,
  MemberBody,
  MemberReply,
  MembersReply,
  ModelsReply,
  OidcFinishBody,
  OidcStartReply,
  OperationsReply,
  PasswordBody,
  PlansReply,
  ProvidersReply,
  RecordingDeletedReply,
  RecordingReply,
  RequestReply,
  RequestsReply,
  ResetBody,
  ResetLinkReply,
  RollbackBody,
  RollbackReply,
  RotatedKeyReply,
  SearchReply,
  SessionReply,
  SetUpBody,
  ShownAccountReply,
  SignInBody,
  SignUpBody,
  StatementReply,
  UsageGroupsReply,
  UsageReply,
  ViewBody,
  ViewsReply,
} from '../../server/schema/schema.js'
import { accountNow, cache, call, urlOf, type Query } from './client.js'

/** Endpoints that read, with their replies. */
export interface Reads {
  '/session': SessionReply
  '/account': ShownAccountReply
  '/plans': PlansReply
  '/keys': KeysReply
  '/keys/{id}': KeyDetailReply
  '/limits': LimitsReply
  '/usage': UsageReply
  '/usage/groups': UsageGroupsReply
  '/statements/{id}': StatementReply
  '/requests': RequestsReply
  '/requests/{id}': RequestReply
  '/live': LiveReply
  '/models': ModelsReply
  '/models/deprecated': DeprecatedReply
  '/models/explain': ExplainReply
  '/operations': OperationsReply
  '/providers': ProvidersReply
  '/configuration': ConfigurationReply
  '/configuration/{id}': GenerationReply
  '/accounts': AccountsReply
  '/audit': AuditReply
  '/members': MembersReply
  '/search': SearchReply
  '/views': ViewsReply
  '/recordings/{id}': RecordingReply
}

/** Endpoints that change state, with their bodies and replies. */
export interface Changes {
  'POST /session': [SignInBody, SessionReply]
  'DELETE /session': [undefined, DoneReply]
  'DELETE /sessions': [undefined, DoneReply]
  'PUT /password': [PasswordBody, SessionReply]
  'POST /setup': [SetUpBody, SessionReply]
  'POST /reset': [ResetBody, SessionReply]
  'POST /sign-up': [SignUpBody, DoneReply]
  'POST /oidc/start': [Record<string, never>, OidcStartReply]
  'POST /oidc/finish': [OidcFinishBody, SessionReply]
  'POST /keys': [CreateKeyBody, CreatedKeyReply]
  'PATCH /keys/{id}': [ChangeKeyBody, KeyReply]
  'POST /keys/{id}/rotate': [{ reason: string | undefined }, RotatedKeyReply]
  'DELETE /keys/{id}': [undefined, KeyReply]
  'PUT /views/{id}': [ViewBody, ViewsReply]
  'DELETE /views/{id}': [undefined, ViewsReply]
  'PUT /members/{id}': [MemberBody, MemberReply]
  'DELETE /members/{id}': [undefined, DoneReply]
  'POST /members/{id}/invite': [Record<string, never>, InviteReply]
  'DELETE /recordings/{id}': [undefined, RecordingDeletedReply]
  'POST /configuration/{id}/rollback': [RollbackBody, RollbackReply]
  'POST /accounts': [CreateAccountBody, CreatedAccountReply]
  'PATCH /accounts/{id}': [ChangeAccountBody, AccountReply]
  'POST /accounts/{id}/reset': [Record<string, never>, ResetLinkReply]
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
  const account = accountNow()
  if (path.startsWith('/keys/')) return account
  if (!path.startsWith('/keys') && !path.startsWith('/members')) return null
  return account === 'all' ? null : account
}
