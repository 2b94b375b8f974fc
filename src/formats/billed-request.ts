/** What an upstream bills, where it gets something else than the client sent. */
import { drawTaskIn, isDrawing } from './images/chat-clients.js'
import { judgedByChats } from './moderations/chat.js'
import type { ChatRequest } from './chat/request.js'
import type { WireFormat } from './dialect.js'

/** The request that its upstream bills: chats for inputs that chats judge, a task for a chat that draws. */
export function billedRequest(request: ChatRequest, wire: WireFormat): ChatRequest {
  if (wire === 'chat-moderations') return judgedByChats(request)
  return isDrawing(wire) ? { ...request, task: drawTaskIn(request) } : request
}

/** The task by which a request is priced; none for chats, also for those that judge inputs. */
export function pricedTask(request: ChatRequest, wire: WireFormat | null): Pick<ChatRequest, 'task'> {
  if (wire === 'chat-moderations') return {}
  return isDrawing(wire) ? { task: drawTaskIn(request) } : request
}
