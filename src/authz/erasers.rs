//! Who may erase a conversation: who began it and may still write in its project, or an admin of the project.

use super::{Checker, on_object};
use crate::error::Result;
use crate::proof::{Admin, Authorized, Write};
use crate::store::Find;
use crate::store::conversations::Conversation;
use uuid::Uuid;

/// Somebody may erase a conversation.
#[derive(Debug)]
pub struct ConversationEraser(pub Authorized<Conversation, Write>);

/// Of one's own conversation it is asked whether one may write in its project; of another's, whether one is an admin there.
///
/// # Errors
/// `not-found`, `permission-denied`, and those of every check.
pub fn conversation_eraser(checker: &Checker<'_>, id: Uuid) -> Result<ConversationEraser> {
    checker.admit()?;
    let caller = checker.caller();
    let found = Conversation::find(&mut checker.store.session()?, caller.tenant_id, id)?;
    if found.is_some_and(|conversation| conversation.created_by == caller.user_id) {
        return on_object::<Conversation, Write>(checker, id).map(ConversationEraser);
    }
    let admin = on_object::<Conversation, Admin>(checker, id)?;
    Ok(ConversationEraser(Authorized::mint(
        admin.into_row(),
        caller.clone(),
    )))
}
