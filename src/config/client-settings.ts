/**
 * How programs of users are pointed at the gateway: variables, settings files and steps of each client, in
 * one table. `sluice connect`, `sluice keys create --connect` and the page on clients read it. Nothing here
 * contains a key: settings name the variable that holds it.
 */
import type { JsonObject } from '../base/json.js'

/** A model that the client shall offer; an absent fact is unknown. */
export interface ClientModel {
  readonly id: string
  readonly contextWindow?: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly vision?: boolean | undefined
}

/** What a client's settings depend on. */
export interface ConnectionTarget {
  /** The gateway without a path, as in `https://llm.example.com`. */
  readonly url: string
  /** The name of the variable that holds the key. */
  readonly keyEnv: string
  /** The first is the client's default. */
  readonly models: readonly [ClientModel, ...ClientModel[]]
  /** Whether the key has a budget; null if that is unknown. */
  readonly hasBudget: boolean | null
  /** The client calls `sluice token` instead of reading a variable; only for one with a helper. */
  readonly byLogin?: boolean
}

/** A settings file: these members go into it, what else it has stays. */
export interface ClientFile {
  /** `~` is the user's home; a relative path starts at the current folder. */
  readonly path: string
  readonly format: 'json' | 'toml' | 'yaml' | 'dotenv'
  /** In lists of maps, an entry of the same `name` is replaced, and any other one stays. */
  readonly settings: JsonObject
  /** Paths of members that contradict the settings and are removed. */
  readonly removed?: readonly (readonly string[])[]
  /** Members that the file needs once: those that it has stay unchanged. */
  readonly initial?: JsonObject
}

/** The helper command of clients: prints a token of the person who signed in. */
export function helperCommand({ url }: Pick<ConnectionTarget, 'url'>): string {
  return `sluice token ${url}`
}

const SIGN_IN_FIRST = 'Sign in first, and again when the sign-in has ended: sluice login'

/** The settings of one client. */
export interface ClientSettings {
  readonly baseUrl: string
  /** The value of the key's variable is `${NAME}`. */
  readonly env: Readonly<Record<string, string>>
  readonly files: readonly ClientFile[]
  /** For the user to do: in the client's window, or in the program's code. */
  readonly steps: readonly string[]
  readonly notes: readonly string[]
}

/** A row of the table. */
export interface Client {
  /** The word of `sluice connect`. */
  readonly name: string
  readonly title: string
  /** Whether the client can call a command for its credential instead of reading a variable. */
  readonly hasHelper: boolean
  /** The start of the ids of its own vendor's models, which its defaults prefer; null: none. */
  readonly prefers: string | null
  readonly settings: (target: ConnectionTarget) => ClientSettings
}

/** The variable that holds the key, unless the user names another one. */
export const KEY_ENV = 'SLUICE_KEY'

/** Context window for a client that needs one, of a model whose window is unknown. */
const ASSUMED_CONTEXT = 128_000

const NO_SETTINGS = { env: {}, files: [], steps: [], notes: [] } as const

/** `.env` with the variables that are no key. */
function envFile(path: string, env: Readonly<Record<string, string>>): ClientFile {
  return { path, format: 'dotenv', settings: env }
}

const KEY_STAYS_OUT = 'The key itself is not in the file: set its variable where the program starts.'

/** A client that variables alone point at the gateway. */
function byVariables(
  { keyEnv }: ConnectionTarget,
  { baseUrl, env, keyName }: { baseUrl: string; env: Readonly<Record<string, string>>; keyName: string },
): ClientSettings {
  return {
    ...NO_SETTINGS,
    baseUrl,
    env: { ...env, [keyName]: `\${${keyEnv}}` },
    files: [envFile('.env', env)],
    notes: [KEY_STAYS_OUT],
  }
}

function openai(target: ConnectionTarget): ClientSettings {
  const baseUrl = `${target.url}/v1`
  return byVariables(target, { baseUrl, env: { OPENAI_BASE_URL: baseUrl }, keyName: 'OPENAI_API_KEY' })
}

function anthropic(target: ConnectionTarget): ClientSettings {
  const { url } = target
  const env = { ANTHROPIC_BASE_URL: url }
  const settings = byVariables(target, { baseUrl: url, env, keyName: 'ANTHROPIC_API_KEY' })
  return { ...settings, notes: [...settings.notes, 'The base URL has no /v1: the SDK adds it.'] }
}

function google(target: ConnectionTarget): ClientSettings {
  const { url } = target
  const env = { GOOGLE_GEMINI_BASE_URL: url }
  const settings = byVariables(target, { baseUrl: url, env, keyName: 'GEMINI_API_KEY' })
  return {
    ...settings,
    steps: [`Or in code: new GoogleGenAI({ apiKey, httpOptions: { baseUrl: '${url}' } })`],
    notes: [...settings.notes, 'The base URL has no /v1beta: the SDK adds it.'],
  }
}

function vercelAi({ url, keyEnv }: ConnectionTarget): ClientSettings {
  const apiKey = `apiKey: process.env.${keyEnv}`
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    steps: [
      `createOpenAI({ baseURL: '${url}/v1', ${apiKey} })`,
      `createAnthropic({ baseURL: '${url}/v1', ${apiKey} })`,
      `createGoogleGenerativeAI({ baseURL: '${url}/v1beta', ${apiKey} })`,
    ],
    notes: ['Each provider reaches every model that the key may use.'],
  }
}

function langchain({ url, keyEnv, models: [{ id }] }: ConnectionTarget): ClientSettings {
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    steps: [
      `Python: ChatOpenAI(model="${id}", base_url="${url}/v1", api_key=os.environ["${keyEnv}"])`,
      `JavaScript: new ChatOpenAI({ model: '${id}', apiKey: process.env.${keyEnv}, configuration: { baseURL: '${url}/v1' } })`,
    ],
    notes: [
      'OpenAIEmbeddings of Python also needs check_embedding_ctx_length=False: it sends token ids else.',
    ],
  }
}

function claudeCode(target: ConnectionTarget): ClientSettings {
  const { url, keyEnv, models, byLogin = false } = target
  const [{ id }] = models
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: id, ANTHROPIC_DEFAULT_HAIKU_MODEL: id }
  return {
    ...NO_SETTINGS,
    baseUrl: url,
    env: byLogin ? {} : { ANTHROPIC_AUTH_TOKEN: `\${${keyEnv}}` },
    files: [
      {
        path: '~/.claude/settings.json',
        format: 'json',
        settings: byLogin ? { apiKeyHelper: helperCommand(target), env } : { env },
        removed: byLogin ? ['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'].map((name) => ['env', name]) : [],
      },
    ],
    steps: byLogin ? [`${SIGN_IN_FIRST} ${url}`] : [],
    notes: [
      ...(byLogin ? ['Unset ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY: they win over the helper.'] : []),
      'ANTHROPIC_DEFAULT_HAIKU_MODEL is for small tasks, such as titles: a cheaper model serves them.',
    ],
  }
}

const WEB_SEARCH_OFF = 'web_search = "disabled"'

function codex({ url, keyEnv, models: [{ id }], hasBudget, byLogin }: ConnectionTarget): ClientSettings {
  const auth = { command: 'sluice', args: ['token', url], refresh_interval_ms: 300_000 }
  const why =
    'a search of the provider may add any number of tokens, so a request with it reserves the whole context of the model'
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: byLogin === true ? {} : { [keyEnv]: `\${${keyEnv}}` },
    steps: byLogin === true ? [`${SIGN_IN_FIRST} ${url}`] : [],
    files: [
      {
        path: '~/.codex/config.toml',
        format: 'toml',
        removed: [['model_providers', 'sluice', byLogin === true ? 'env_key' : 'auth']],
        settings: {
          model: id,
          model_provider: 'sluice',
          ...(hasBudget === true ? { web_search: 'disabled' } : {}),
          model_providers: {
            sluice: {
              name: 'Sluice',
              base_url: `${url}/v1`,
              wire_api: 'responses',
              supports_websockets: true,
              ...(byLogin === true ? { auth } : { env_key: keyEnv }),
            },
          },
        },
      },
    ],
    notes:
      hasBudget === null
        ? [`If the key has a budget, add ${WEB_SEARCH_OFF} above the first table: ${why}.`]
        : hasBudget
          ? [`${WEB_SEARCH_OFF} is there because the key has a budget: ${why}.`]
          : [],
  }
}

function geminiCli({ url, keyEnv, models: [{ id }] }: ConnectionTarget): ClientSettings {
  const env = { GOOGLE_GEMINI_BASE_URL: url }
  return {
    ...NO_SETTINGS,
    baseUrl: url,
    env: { ...env, GEMINI_API_KEY: `\${${keyEnv}}` },
    files: [
      {
        path: '~/.gemini/settings.json',
        format: 'json',
        settings: { security: { auth: { selectedType: 'gemini-api-key' } } },
      },
      envFile('~/.gemini/.env', env),
    ],
    steps: [`Choose the model: gemini --model ${id}`],
    notes: [
      'Without security.auth.selectedType it ends with "Invalid auth method selected".',
      'In a folder that is not trusted, gemini -p needs --skip-trust.',
    ],
  }
}

/** What opencode needs about a model of a provider that is in its settings alone. */
function opencodeModel({ contextWindow, maxOutputTokens, vision }: ClientModel): JsonObject {
  const hasLimits = contextWindow !== undefined && maxOutputTokens !== undefined
  return {
    ...(hasLimits ? { limit: { context: contextWindow, output: maxOutputTokens } } : {}),
    ...(vision === true
      ? { attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } }
      : {}),
  }
}

function opencode({ url, keyEnv, models }: ConnectionTarget): ClientSettings {
  const sluice = {
    npm: '@ai-sdk/openai-compatible',
    name: 'Sluice',
    options: { baseURL: `${url}/v1`, apiKey: `{env:${keyEnv}}` },
    models: Object.fromEntries(models.map((model) => [model.id, opencodeModel(model)])),
  }
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    files: [
      {
        path: '~/.config/opencode/opencode.json',
        format: 'json',
        initial: { $schema: 'https://opencode.ai/config.json' },
        settings: { provider: { sluice }, model: `sluice/${models[0].id}` },
      },
    ],
    notes: [
      'opencode offers only the models that are named here. opencode.json of a project has the same form.',
    ],
  }
}

function aider({ url, keyEnv, models: [{ id }] }: ConnectionTarget): ClientSettings {
  const settings = { 'openai-api-base': `${url}/v1`, model: `openai/${id}` }
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { OPENAI_API_KEY: `\${${keyEnv}}` },
    files: [{ path: '.aider.conf.yml', format: 'yaml', settings }],
    notes: ['The file may also be in the home folder or at the root of the repository.'],
  }
}

function cline({ url, keyEnv, models: [{ id }] }: ConnectionTarget): ClientSettings {
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    steps: [
      `cline auth -p openai-compatible -k "$${keyEnv}" -m ${shellWord(id)} -b ${url}/v1`,
      `In the editor: Settings → API Provider "OpenAI Compatible", Base URL ${url}/v1, the key, Model ID ${id}`,
    ],
    notes: [
      'Cline keeps the key itself in ~/.cline/data/settings/providers.json, so no file is written here.',
    ],
  }
}

function continueDev({ url, keyEnv, models }: ConnectionTarget): ClientSettings {
  const entries = models.map(({ id }) => ({
    name: id,
    provider: 'openai',
    model: id,
    apiBase: `${url}/v1`,
    apiKey: `\${{ secrets.${keyEnv} }}`,
  }))
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    files: [
      {
        path: '~/.continue/config.yaml',
        format: 'yaml',
        initial: { name: 'Sluice', version: '1.0.0', schema: 'v1' },
        settings: { models: entries },
      },
    ],
    notes: [`Continue reads secrets.${keyEnv} from ~/.continue/.env or from the variable.`],
  }
}

function qwenCode(target: ConnectionTarget): ClientSettings {
  const baseUrl = `${target.url}/v1`
  const env = { OPENAI_BASE_URL: baseUrl, OPENAI_MODEL: target.models[0].id }
  const settings = byVariables(target, { baseUrl, env, keyName: 'OPENAI_API_KEY' })
  return { ...settings, steps: ['Start it with: qwen --auth-type openai'] }
}

function openWebUi(target: ConnectionTarget): ClientSettings {
  const baseUrl = `${target.url}/v1`
  const env = { OPENAI_API_BASE_URLS: baseUrl }
  return {
    ...byVariables(target, { baseUrl, env, keyName: 'OPENAI_API_KEYS' }),
    steps: [`Or in its window: Admin Settings → Connections → OpenAI API: URL ${baseUrl}, and the key`],
    notes: [
      KEY_STAYS_OUT,
      'Several addresses and keys are separated by ";".',
      'After the first start, the values in its database win: change them in its window, or set ENABLE_PERSISTENT_CONFIG=false.',
    ],
  }
}

function libreChat({ url, keyEnv, models }: ConnectionTarget): ClientSettings {
  const sluice = {
    name: 'Sluice',
    apiKey: `\${${keyEnv}}`,
    baseURL: `${url}/v1`,
    models: { default: models.map(({ id }) => id), fetch: true },
  }
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    files: [
      {
        path: 'librechat.yaml',
        format: 'yaml',
        initial: { version: '1.3.0' },
        settings: { endpoints: { custom: [sluice] } },
      },
    ],
    notes: ['For Messages instead of chat completions, add provider: anthropic to the endpoint.'],
  }
}

function n8n({ url, keyEnv, models: [{ id }] }: ConnectionTarget): ClientSettings {
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    steps: [
      `Credentials → Create → OpenAI: Base URL ${url}/v1, API Key: the key`,
      `Node "OpenAI Chat Model": this credential, and the model ${id} by id`,
    ],
  }
}

function cursor({ url, keyEnv, models }: ConnectionTarget): ClientSettings {
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { [keyEnv]: `\${${keyEnv}}` },
    steps: [
      'Settings → Models → API Keys → OpenAI API Key: the key',
      `Override OpenAI Base URL: ${url}/v1`,
      `Add custom model: ${models.map(({ id }) => id).join(', ')}`,
    ],
    notes: ["Requests come from Cursor's servers: the gateway must be reachable from the internet."],
  }
}

function zed({ url, keyEnv, models }: ConnectionTarget): ClientSettings {
  const available = models.map(({ id, contextWindow = ASSUMED_CONTEXT, maxOutputTokens, vision }) => ({
    name: id,
    display_name: id,
    max_tokens: contextWindow,
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    // Its own defaults, which have no pictures.
    ...(vision === true
      ? { capabilities: { tools: true, images: true, parallel_tool_calls: false, prompt_cache_key: false } }
      : {}),
  }))
  const sluice = { api_url: `${url}/v1`, available_models: available }
  return {
    ...NO_SETTINGS,
    baseUrl: `${url}/v1`,
    env: { SLUICE_API_KEY: `\${${keyEnv}}` },
    files: [
      {
        path: '~/.config/zed/settings.json',
        format: 'json',
        settings: { language_models: { openai_compatible: { Sluice: sluice } } },
      },
    ],
    notes: ['SLUICE_API_KEY is the name that Zed makes from the provider; its window takes the key, too.'],
  }
}

/** A word of a command line for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** All clients, in the order of the list. */
export const CLIENTS: readonly Client[] = [
  { name: 'openai', title: 'OpenAI SDKs', hasHelper: false, prefers: 'gpt-', settings: openai },
  { name: 'anthropic', title: 'Anthropic SDKs', hasHelper: false, prefers: 'claude-', settings: anthropic },
  { name: 'google', title: 'Google Gen AI SDKs', hasHelper: false, prefers: 'gemini-', settings: google },
  { name: 'vercel-ai', title: 'Vercel AI SDK', hasHelper: false, prefers: null, settings: vercelAi },
  { name: 'langchain', title: 'LangChain', hasHelper: false, prefers: null, settings: langchain },
  { name: 'claude-code', title: 'Claude Code', hasHelper: true, prefers: 'claude-', settings: claudeCode },
  { name: 'codex', title: 'Codex', hasHelper: true, prefers: 'gpt-', settings: codex },
  { name: 'gemini-cli', title: 'Gemini CLI', hasHelper: false, prefers: 'gemini-', settings: geminiCli },
  { name: 'opencode', title: 'opencode', hasHelper: false, prefers: null, settings: opencode },
  { name: 'aider', title: 'aider', hasHelper: false, prefers: null, settings: aider },
  { name: 'cline', title: 'Cline', hasHelper: false, prefers: null, settings: cline },
  { name: 'continue', title: 'Continue', hasHelper: false, prefers: null, settings: continueDev },
  { name: 'qwen-code', title: 'Qwen Code', hasHelper: false, prefers: null, settings: qwenCode },
  { name: 'open-webui', title: 'Open WebUI', hasHelper: false, prefers: null, settings: openWebUi },
  { name: 'librechat', title: 'LibreChat', hasHelper: false, prefers: null, settings: libreChat },
  { name: 'n8n', title: 'n8n', hasHelper: false, prefers: null, settings: n8n },
  { name: 'cursor', title: 'Cursor', hasHelper: false, prefers: null, settings: cursor },
  { name: 'zed', title: 'Zed', hasHelper: false, prefers: null, settings: zed },
]
