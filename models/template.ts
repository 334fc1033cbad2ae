/** Chat templates of Hugging Face models: petrel's own engine for the part of Jinja that they use. */
export { TemplateError } from './template/errors.ts';
export { ChatTemplate, renderChat } from './template/render.ts';
export type { ChatInput, ChatMessage, RenderedChat } from './template/render.ts';
