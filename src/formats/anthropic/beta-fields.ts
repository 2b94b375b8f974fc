/**
 * Removes the fields of beta features that the upstream does not get, from a client's own body. A field whose
 * feature is left out is refused by the API, so it is left out and reported with it.
 */
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { Losses, SentBetas } from '../dialect.js'
import { foundText, isProgram } from './constants.js'
import {
  BETA_FIELDS,
  BETA_TOOLS,
  CLAUDE_BETAS,
  type BetaField,
  type BetaTool,
  type ClaudePlatform,
} from '../vendors.js'
import type { Edit } from '../wire/json/splice.js'
import { largeEdit } from '../wire/json/write-json.js'

/** The upstream that a body is edited for. */
interface FieldContext {
  /** The cloud; null: Anthropic's own API, which takes the fields of all features that it gets. */
  readonly platform: ClaudePlatform | null
  readonly betas: SentBetas
  readonly losses: Losses
}

/** The edits with those that remove fields; they apply to the body with `edits`. */
export function withoutBetaFields(body: JsonObject, edits: Edit[], context: FieldContext): Edit[] {
  const refused = BETA_FIELDS.filter((field) => isRefused(field, context))
  const tools = BETA_TOOLS.filter((tool) => isToolRefused(tool, context))
  if (refused.length === 0 && tools.length === 0) return edits
  const out = [...edits]
  const valueOf = (key: string): JsonValue | undefined => {
    const edit = edits.findLast((each) => each.key === key)
    if (edit === undefined) return body[key]
    return edit.json === null ? undefined : (edit.value ?? parsed(edit.json))
  }
  const set = (key: string, value: JsonValue): void => {
    const at = out.findIndex((edit) => edit.key === key)
    if (at !== -1) out.splice(at, 1)
    out.push(value === null ? { key, json: null } : largeEdit(key, value))
  }
  for (const { place, name } of refused) {
    if (place !== 'body' || (valueOf(name) ?? null) === null) continue
    context.losses.drop(name, 'no-equivalent')
    set(name, null)
  }
  const remover = new FieldRemover(refused, tools, context.losses)
  for (const key of ['output_config', 'context_management', 'tools', 'system', 'messages']) {
    const value = valueOf(key)
    const changed = value === undefined ? null : remover.without(key, value)
    if (changed === null) continue
    const isEmpty = changed === REMOVED || (key === 'tools' && arrayOf(changed).length === 0)
    set(key, isEmpty ? null : changed)
    const choice = key === 'tools' ? objectOf(valueOf('tool_choice')) : {}
    if (!isLostChoice(choice, changed)) continue
    if (choice.type === 'any' || choice.type === 'tool') context.losses.drop('tool_choice', 'no-equivalent')
    set('tool_choice', null)
  }
  return out
}

/** Whether a choice needs a tool that was left out: any of them, or the one that it names. */
function isLostChoice(choice: JsonObject, tools: JsonValue): boolean {
  const left = arrayOf(tools)
  if (left.length === 0) return choice.type !== undefined
  return choice.type === 'tool' && !left.some((tool) => objectOf(tool).name === choice.name)
}

/** A cloud without any of the features does not have the tool, whether or not the client requests one. */
function isToolRefused({ betas }: BetaTool, { platform, betas: each }: FieldContext): boolean {
  if (betas.some((beta) => each.sent.has(beta))) return false
  if (betas.some((beta) => each.requested.has(beta))) return true
  return platform !== null && !betas.some((beta) => CLAUDE_BETAS[platform].includes(beta))
}

function isRefused({ betas, takenBy }: BetaField, { platform, betas: each }: FieldContext): boolean {
  if (betas.some((beta) => each.sent.has(beta))) return false
  if (platform === null) return betas.some((beta) => each.requested.has(beta))
  return takenBy?.includes(platform) !== true
}

function parsed(json: string | Buffer): JsonValue {
  return JSON.parse(json.toString()) as JsonValue
}

/** Instead of an item or option that is left out. */
const REMOVED: JsonObject = {}

/** The field of tools that a search finds, whose features also allow references to them. */
const SEARCHED = 'defer_loading'

/** Removes members of one body's tools, blocks and options. */
class FieldRemover {
  private readonly names: Readonly<Record<BetaField['place'], readonly string[]>>
  private readonly tools: readonly BetaTool[]
  private readonly losses: Losses

  constructor(refused: readonly BetaField[], tools: readonly BetaTool[], losses: Losses) {
    const at = (place: BetaField['place']): readonly string[] =>
      refused.filter((field) => field.place === place).map(({ name }) => name)
    this.names = {
      body: at('body'),
      output_config: at('output_config'),
      tools: at('tools'),
      messages: at('messages'),
      cache_control: at('cache_control'),
    }
    this.tools = tools
    this.losses = losses
  }

  /** The value of a top-level member without the fields; null if nothing changes. */
  without(key: string, value: JsonValue): JsonValue | null {
    switch (key) {
      case 'output_config':
        return isObject(value) ? this.members(value, 'output_config') : null
      case 'context_management':
        return isObject(value) ? this.edits(value) : null
      case 'tools':
        return this.list(value, (tool) => {
          if (this.leavesOut(tool, 'tools')) return REMOVED
          const own = this.members(tool, 'tools')
          return this.marks(own ?? tool) ?? own
        })
      case 'system':
        return this.list(value, (block) => this.marks(block))
      default:
        return this.list(value, (message) => {
          const content = this.blocks(message.content)
          if (content === null) return null
          return content.length === 0 ? REMOVED : { ...message, content }
        })
    }
  }

  /** The edits of the context; `REMOVED` if none is left. */
  private edits(value: JsonObject): JsonObject | null {
    const edits = this.list(value.edits, (edit) =>
      this.leavesOut(edit, 'context_management') ? REMOVED : null,
    )
    if (edits === null) return null
    return edits.length === 0 ? REMOVED : { ...value, edits }
  }

  /** The blocks of a message or of a result of a tool. */
  private blocks(value: JsonValue | undefined): JsonValue[] | null {
    return this.list(value, (block) => {
      if (this.leavesOut(block, 'messages')) return REMOVED
      if (block.type === 'tool_reference' && this.names.tools.includes(SEARCHED)) return this.found(block)
      const inner = block.type === 'tool_result' ? this.blocks(block.content) : null
      const whole = inner === null ? null : { ...block, content: inner }
      const own = this.members(whole ?? block, 'messages') ?? whole
      return this.marks(own ?? block) ?? own
    })
  }

  /** Whether a tool, a block of its use, or an edit goes with its feature; it is reported. */
  private leavesOut({ type, name }: JsonObject, place: 'tools' | 'messages' | 'context_management'): boolean {
    const kind = stringOf(type === 'server_tool_use' ? name : type) ?? ''
    if (!this.tools.some(({ kinds }) => kinds.test(kind))) return false
    this.losses.drop(`${place}.${kind}`, 'no-equivalent')
    return true
  }

  /** A reference to a found tool as text: without the feature the API accepts no such block. */
  private found({ tool_name: name, cache_control: mark }: JsonObject): JsonObject {
    this.losses.drop('messages.tool_reference', 'approximated')
    const text = { type: 'text', text: `${foundText([stringOf(name) ?? ''])}\n` }
    return mark === undefined
      ? text
      : (this.marks({ ...text, cache_control: mark }) ?? { ...text, cache_control: mark })
  }

  private list(
    value: JsonValue | undefined,
    change: (item: JsonObject) => JsonObject | null,
  ): JsonValue[] | null {
    let out: JsonValue[] | null = null
    for (const [at, item] of arrayOf(value).entries()) {
      const changed = isObject(item) ? change(item) : null
      if (changed !== null) out ??= arrayOf(value).slice(0, at)
      if (changed !== REMOVED) out?.push(changed ?? item)
    }
    return out
  }

  private marks(item: JsonObject): JsonObject | null {
    const mark = this.members(objectOf(item.cache_control), 'cache_control')
    return mark === null ? null : { ...item, cache_control: mark }
  }

  private members(item: JsonObject, place: BetaField['place']): JsonObject | null {
    const names = this.names[place].filter((name) => item[name] !== undefined)
    if (names.length === 0) return null
    for (const name of names) {
      const value = item[name]
      const isDefault = value === null || value === false || (name === 'caller' && !isProgram(value))
      if (!isDefault) this.losses.drop(`${place}.${name}`, 'no-equivalent')
    }
    return Object.fromEntries(Object.entries(item).filter(([key]) => !names.includes(key)))
  }
}
